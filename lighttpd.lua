-- lighttpd.lua: what lighttpd answers by itself: its refusals, of which
-- lighttpd.conf makes a request for /error, and who may ask for a page. What
-- the service answers does not come through here.
-- LEASE_HOSTS  names that pages are given under, see lighttpd.conf
-- SPDX-License-Identifier: MIT

local PROBLEMS = {
    [400] = {"Bad Request", "malformed", "The request cannot be read."},
    [401] = {"Unauthorized", "unauthorized",
        "This needs a user and a password."},
    [403] = {"Forbidden", "forbidden", "You may not do this here."},
    [404] = {"Not Found", "not_found", "There is nothing at this path."},
    [405] = {"Method Not Allowed", "method_not_allowed",
        "This path does not take this method; Allow says which it does."},
    [411] = {"Length Required", "length_required",
        "A body needs a Content-Length."},
    [413] = {"Content Too Large", "too_large",
        "The body is larger than this path takes."},
    [414] = {"URI Too Long", "too_large", "The URL is too long."},
    [421] = {"Misdirected Request", "foreign_host",
        "The service does not answer to this host name."},
    [431] = {"Request Header Fields Too Large", "too_large",
        "The request's header is too large."},
    [500] = {"Internal Server Error", "internal",
        "The service failed; its log says how."},
    [501] = {"Not Implemented", "malformed",
        "The request asks for something unknown."},
    [502] = {"Bad Gateway", "unavailable",
        "The service ended before it answered; it may have done it. Try again."},
    [503] = {"Service Unavailable", "unavailable",
        "The service does not run at the moment. Try again."},
    [504] = {"Gateway Timeout", "unavailable",
        "The service took too long to answer; it may have done it. Try again."},
    [505] = {"HTTP Version Not Supported", "malformed",
        "The request's version of HTTP is unknown."},
}

local LOG_LINES_MAX = 100 -- a second

local r = lighty.r
local from, to = r.req_attr, r.resp_header

-- As http_request_id() in fcgi/http.c.
local function request_id()
    local given = r.req_header["X-Request-Id"]
    if given and #given <= 64 and given:find("^[%w_.:-]+$") then
        return given
    end
    return string.format("%08x%08x", lighty.c.rand() & 0xffffffff,
        lighty.c.rand() & 0xffffffff)
end

-- The name in a Host header: without port, brackets, final dot.
local function host_name(host)
    return (host:match("^%[([^%]]*)%]") or host:match("^[^:]*")):lower()
        :gsub("(.)%.$", "%1")
end

-- As host_known() in fcgi/http.c.
local function host_known()
    local name = host_name(r.req_header["Host"] or "")
    if name == "localhost" or
        name == from["request.server-addr"]:gsub("[%[%]]", "") then
        return true
    end
    for known in (os.getenv("LEASE_HOSTS") or ""):gmatch("[^, ]+") do
        if name ~= "" and name == known:lower() then
            return true
        end
    end
    return false
end

-- The status that a page is refused with, or nil.
local function page_refused()
    local method = from["request.method"]
    if not host_known() then
        return 421
    elseif from["uri.path"] == "*" or method ~= "GET" and method ~= "HEAD" and
        lighty.c.stat(from["physical.path"]) then
        to["Allow"] = "GET, HEAD, OPTIONS"
        return method == "OPTIONS" and 204 or 405
    end
end

-- As problem_log() in fcgi/problem.c: what failed is found by its id. How many
-- were left out is told before the next one. _G stays, all else in here is new
-- for each request.
local function log_failure(status)
    local second, log = os.time(), _G.failures or {left_out = 0}
    _G.failures = log
    if log.second ~= second then
        log.second, log.lines = second, 0
    end
    if log.lines == LOG_LINES_MAX then
        log.left_out = log.left_out + 1
        return
    end
    log.lines = log.lines + 1
    if log.left_out > 0 then
        print("level=warning event=left_out lines=" .. log.left_out)
        log.left_out = 0
    end
    local path = from["request.orig-uri"]:match("^[%w/_.-]*"):sub(1, 64)
    print(string.format("level=error event=answered request=%s path=%s " ..
        "status=%d", to["X-Request-Id"], path, status))
end

local function refuse(status)
    local problem = PROBLEMS[status] or PROBLEMS[status < 500 and 400 or 500]
    if status >= 502 and status <= 504 then
        to["Retry-After"] = "1"
        log_failure(status)
    end
    to["Content-Type"] = "application/problem+json"
    r.resp_body.set(string.format('{"type":"about:blank","title":"%s",' ..
        '"status":%d,"code":"%s","detail":"%s"}', problem[1], status,
        problem[2], problem[3]))
end

to["X-Request-Id"] = request_id()
local status = tonumber(r.req_env["REDIRECT_STATUS"])
if not status then
    status = page_refused()
elseif status == 500 then
    status = 502 -- lighttpd says 500 when the service ends
elseif status == 405 then
    to["Allow"] = "GET, HEAD, OPTIONS"
end
-- A page and its modules are of one version: ask whether they changed.
to["Cache-Control"] = status and "no-store" or "no-cache"
if status and status >= 400 then
    refuse(status)
end
return status or 0
