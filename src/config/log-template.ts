/**
 * Templates of access log lines: the variables of nginx's `log_format` (`$status`), or the directives of Apache's
 * `LogFormat` (`%>s`). A text with a `$` before a letter is of nginx, any other one of Apache.
 */

/** Variables of a line, under the names of nginx where it has one; request fields are beside them. */
const VARIABLES = [
  ...['remote_addr', 'remote_user', 'time_local', 'time_iso8601', 'msec', 'request', 'request_method', 'request_uri'],
  ...['uri', 'args', 'server_protocol', 'scheme', 'host', 'status', 'body_bytes_sent', 'request_body_bytes'],
  ...['request_time', 'upstream_addr', 'upstream_connect_time', 'upstream_header_time', 'upstream_response_time'],
  ...['connection', 'request_id', 'trace_id', 'span_id', 'api', 'error_code', 'source_state', 'target_state'],
  // Variables that only templates of Apache have.
  ...['request_microseconds', 'request_milliseconds', 'request_seconds', 'body_bytes_or_dash', 'query_string'],
  ...['connection_status', 'nothing', 'seconds', 'milliseconds'],
] as const
type LogVariable = (typeof VARIABLES)[number]

/** Literal text, a variable, or a request field by its name in lower case. */
type LogPart = { readonly text: string } | { readonly variable: LogVariable } | { readonly field: string }

/** Variables without a name in nginx, which are written as directives only. */
const APACHE_ONLY: readonly LogVariable[] = VARIABLES.slice(VARIABLES.indexOf('request_microseconds'))

/** Names of nginx's module for OpenTelemetry. */
const SYNONYMS: Readonly<Record<string, LogVariable>> = { otel_trace_id: 'trace_id', otel_span_id: 'span_id' }

const TEMPLATE_CHARS_MAX = 1024
const NGINX = /\$(?:\{(\w+)\}|(\w+))/g
const APACHE = /%(?:[<>])?(?:\{([^}]*)\})?([a-zA-Z%])/g
const FIELD = /^[0-9a-z-]{1,64}$/

const DIRECTIVES: Readonly<Record<string, LogVariable>> = {
  ...{ a: 'remote_addr', h: 'remote_addr', l: 'nothing', u: 'remote_user', t: 'time_local', r: 'request' },
  ...{ s: 'status', b: 'body_bytes_or_dash', B: 'body_bytes_sent', D: 'request_microseconds', T: 'request_seconds' },
  ...{ m: 'request_method', U: 'uri', q: 'query_string', H: 'server_protocol', v: 'host', V: 'host', L: 'request_id' },
  ...{ X: 'connection_status' },
}
/** Directives with an argument in braces, by argument and letter. */
const WITH_ARGUMENT: Readonly<Record<string, LogVariable>> = {
  ...{ 'us T': 'request_microseconds', 'ms T': 'request_milliseconds', 's T': 'request_seconds' },
  ...{ 'sec t': 'seconds', 'msec t': 'milliseconds', 'c a': 'remote_addr' },
}

/** The parts of a template; undefined where it has an unknown variable or directive, or is too long. */
export function readLogTemplate(template: string): readonly LogPart[] | undefined {
  if (template === '' || template.length > TEMPLATE_CHARS_MAX) return undefined
  const isNginx = /\$\{?[a-z]/.test(template)
  /** Characters that start a variable, and that no literal text has. */
  const opening = isNginx ? '${' : '%'
  const parts: LogPart[] = []
  let from = 0
  for (const found of template.matchAll(isNginx ? NGINX : APACHE)) {
    const between = template.slice(from, found.index)
    const part = isNginx ? nginxPart(found[1] ?? found[2]!) : apachePart(found[1], found[2]!)
    if (part === undefined || between.includes(opening)) return undefined
    if (between !== '') parts.push({ text: between })
    parts.push(...part)
    from = found.index + found[0].length
  }
  const rest = template.slice(from)
  if (rest.includes(opening)) return undefined
  return rest === '' ? parts : [...parts, { text: rest }]
}

function nginxPart(name: string): readonly LogPart[] | undefined {
  const variable = SYNONYMS[name] ?? VARIABLES.find(one => one === name)
  if (variable !== undefined && !APACHE_ONLY.includes(variable)) return [{ variable }]
  return name.startsWith('http_') ? fieldPart(name.slice('http_'.length).replaceAll('_', '-')) : undefined
}

function apachePart(argument: string | undefined, letter: string): readonly LogPart[] | undefined {
  if (argument !== undefined) {
    if (letter === 'i') return fieldPart(argument.toLowerCase())
    const variable = WITH_ARGUMENT[`${argument} ${letter}`]
    return variable === undefined ? undefined : [{ variable }]
  }
  if (letter === '%') return [{ text: '%' }]
  const variable = DIRECTIVES[letter]
  if (variable === undefined) return undefined
  // Apache writes the time of `%t` in brackets.
  return letter === 't' ? [{ text: '[' }, { variable }, { text: ']' }] : [{ variable }]
}

function fieldPart(field: string): readonly LogPart[] | undefined {
  return FIELD.test(field) ? [{ field }] : undefined
}

/** Share of the lines that are written, by status: `2xx=0.01`, `404=0`. */
export interface StatusShare {
  /** Lowest and highest status. */
  readonly from: number
  readonly to: number
  readonly share: number
}

const SHARE = /^([1-5])(xx|\d\d)\s*=\s*(0(?:\.\d{1,6})?|1(?:\.0{1,6})?)$/

/** Undefined for anything else. */
export function readStatusShare(text: string): StatusShare | undefined {
  const [, digit, rest, share] = SHARE.exec(text) ?? []
  if (digit === undefined) return undefined
  const isClass = rest === 'xx'
  const from = Number(digit) * 100 + (isClass ? 0 : Number(rest))
  return { from, to: isClass ? from + 99 : from, share: Number(share) }
}

/** Facilities of syslog (RFC 5424 6.2.1) for services: their number is their place from 16 on, of `daemon` 3. */
export const FACILITIES = ['daemon', ...Array.from({ length: 8 }, (_, number) => `local${number}` as const)] as const

/** Number of a facility. */
export function facilityNumber(facility: string): number {
  return facility === 'daemon' ? 3 : 16 + Number(facility.slice(-1))
}
