// spark.js: numbers over time, as a line or as bars.
//
//   const line = new Line(svg), bars = new Bars(svg);
//   line.draw(values, known)     oldest first; those before the place `known`
//                                are not known
// SPDX-License-Identifier: MIT

const SVG = 'http://www.w3.org/2000/svg';
const PAD = 2;

function path(svg, className) {
  const element = document.createElementNS(SVG, 'path');
  element.setAttribute('class', className);
  element.setAttribute('vector-effect', 'non-scaling-stroke');
  svg.append(element);
  return element;
}

const size = (svg) => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];

export class Line {
  #svg;
  #area;
  #line;

  constructor(svg) {
    this.#svg = svg;
    this.#area = path(svg, 'spark-area');
    this.#line = path(svg, 'spark-line');
  }

  draw(values, known) {
    const [width, height] = size(this.#svg);
    const most = Math.max(1, ...values);
    const x = (i) => (i * width / (values.length - 1)).toFixed(1);
    const points = values.slice(known).map((value, i) =>
      `${x(known + i)} ${(height - PAD - value / most * (height - 2 * PAD)).toFixed(1)}`);
    const line = points.length > 1 ? `M${points.join('L')}` : '';
    this.#line.setAttribute('d', line);
    this.#area.setAttribute('d', line &&
      `${line}L${x(values.length - 1)} ${height}L${x(known)} ${height}Z`);
  }
}

export class Bars {
  #svg;
  #base;
  #bars;

  constructor(svg) {
    this.#svg = svg;
    this.#base = path(svg, 'bars-base');
    this.#bars = path(svg, 'bars');
  }

  draw(values, known) {
    const [width, height] = size(this.#svg);
    const most = Math.max(1, ...values);
    const step = width / values.length;
    const bars = values.map((value, i) => {
      if (!value || i < known) return '';
      const tall = Math.max(1.5, value / most * (height - 1));
      return `M${(i * step + 0.4).toFixed(1)} ${height - 1}` +
        `v${-tall.toFixed(1)}h${(step - 0.8).toFixed(1)}v${tall.toFixed(1)}z`;
    });
    this.#base.setAttribute('d',
        `M${(known * step).toFixed(1)} ${height - 0.5}H${width}`);
    this.#bars.setAttribute('d', bars.join(''));
  }
}
