// spec.js: what the page asks of an OpenAPI document.
//
//   const spec = new Spec(await (await fetch('/openapi.json')).json());
//   for (const op of spec.operations()) op.id, op.method, op.path, …
//   spec.look(schema)         the schema with its $ref followed
// SPDX-License-Identifier: MIT

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];

function merge(base, over) {
  const {$ref, ...rest} = over;
  const merged = {...base, ...rest};
  if (base.required || rest.required) {
    merged.required = [...base.required ?? [], ...rest.required ?? []];
  }
  if (base.properties && rest.properties) {
    merged.properties = {...base.properties};
    for (const [name, schema] of Object.entries(rest.properties)) {
      merged.properties[name] = {...base.properties[name], ...schema};
    }
  }
  return merged;
}

export class Spec {
  constructor(doc) {
    this.doc = doc;
  }

  /** An object of the document; where it refers to another, both in one. */
  look(object) {
    if (typeof object?.$ref !== 'string') return object ?? {};
    const path = object.$ref.replace(/^#\//, '').split('/')
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    const target = path.reduce((at, part) => at?.[part], this.doc);
    return merge(this.look(target), object);
  }

  /** All operations in the order of the document, each with what it needs. */
  operations() {
    return Object.entries(this.doc.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) =>
        this.#operation(path, method, item)));
  }

  #operation(path, method, item) {
    const it = item[method];
    const body = this.look(it.requestBody);
    const content = body.content?.['application/json'];
    return {
      path, method: method.toUpperCase(),
      id: it.operationId, tag: it.tags?.[0], summary: it.summary,
      description: it.description,
      parameters: [...item.parameters ?? [], ...it.parameters ?? []]
          .map((parameter) => this.look(parameter)),
      body: content && this.look(content.schema),
      examples: content?.examples ?? {},
      responses: Object.entries(it.responses).map(([status, response]) =>
        ({status, shared: response.$ref?.split('/').pop(),
          ...this.response(response)})),
    };
  }

  /** A response: description, headers, schema and examples of its body, and
   * of each example the type. */
  response(object) {
    const it = this.look(object);
    const types = Object.keys(it.content ?? {});
    const content = it.content?.[types[0]];
    return {
      description: it.description, types,
      isProblem: types[0] === 'application/problem+json',
      headers: Object.entries(it.headers ?? {}).map(([name, header]) =>
        ({name, ...this.look(header)})),
      schemas: (content?.schema?.oneOf ?? [content?.schema])
          .filter(Boolean).map((schema) => this.look(schema)),
      examples: Object.assign({}, ...types.map((type) =>
        it.content[type].examples)),
      typeOf: Object.fromEntries(types.flatMap((type) =>
        Object.keys(it.content[type].examples).map((name) => [name, type]))),
    };
  }

  /** The problem codes that a response may have. */
  codes(response) {
    return [...new Set(response.schemas.flatMap(({properties}) => {
      const code = properties?.code ?? {};
      return 'const' in code ? [code.const] : code.enum ?? [];
    }))];
  }

  /** The closed list: [code, what it means]. */
  allCodes() {
    const {enum: codes, 'x-enumDescriptions': words} =
      this.doc.components.schemas.ProblemCode;
    return codes.map((code) => [code, words[code]]);
  }
}
