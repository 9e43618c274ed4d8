/** Lines of the access log by a template: variables of nginx or directives of Apache (`config/log-template.ts`). */
import { capturedValue } from '../http1/captured-fields.ts'
import { transportCode } from '../protocol/failure-table.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type AccessRecord, CHARS_MAX, LINE_BYTES_MAX, localTime, requestLine } from './access-line.ts'
import { escapeHex, escapeJson } from './escape.ts'
import { isSecretName, MASK, redactText, redactUrl } from './redact.ts'

/** Values of one line. */
interface Line {
  readonly record: AccessRecord
  /** Start of the request in milliseconds since 1970. */
  readonly wallMs: number
}

type Value = (line: Line) => string

/** Longest value of a request field that the template names. */
const FIELD_CHARS_MAX = 1024
const DASH = '-'

const VALUES = {
  remote_addr: ({ record }) => record.clientAddress,
  remote_user: ({ record }) => record.caller?.user || DASH,
  time_local: ({ wallMs }) => localTime(wallMs),
  time_iso8601: ({ wallMs }) => `${new Date(wallMs).toISOString().slice(0, 19)}+00:00`,
  msec: ({ wallMs }) => seconds(wallMs),
  seconds: ({ wallMs }) => String(Math.floor(wallMs / 1000)),
  milliseconds: ({ wallMs }) => String(wallMs),
  request: ({ record }) => requestLine(record),
  request_method: ({ record }) => record.method || DASH,
  request_uri: ({ record }) => redactUrl(record.requestTarget) || DASH,
  uri: ({ record }) => redactUrl(record.requestTarget).split('?', 1)[0] || DASH,
  args: ({ record }) => query(record) || DASH,
  query_string: ({ record }) => (query(record) === '' ? '' : `?${query(record)}`),
  server_protocol: ({ record }) => (record.minorVersion < 0 ? DASH : `HTTP/1.${record.minorVersion}`),
  scheme: ({ record }) => (record.isSecured ? 'https' : 'http'),
  host: ({ record }) => record.host || DASH,
  status: ({ record }) => String(record.status),
  body_bytes_sent: ({ record }) => String(record.responseBodyBytes),
  body_bytes_or_dash: ({ record }) => (record.responseBodyBytes > 0 ? String(record.responseBodyBytes) : DASH),
  request_body_bytes: ({ record }) => String(record.requestBodyBytes),
  request_time: ({ record }) => seconds(record.doneMs - record.startedMs),
  request_seconds: ({ record }) => String(Math.floor((record.doneMs - record.startedMs) / 1000)),
  request_milliseconds: ({ record }) => String(Math.floor(record.doneMs - record.startedMs)),
  request_microseconds: ({ record }) => String(Math.round((record.doneMs - record.startedMs) * 1000)),
  upstream_addr: ({ record }) => record.backend || DASH,
  upstream_connect_time: ({ record }) => (record.sentMs > 0 ? seconds(record.connectMs) : DASH),
  upstream_header_time: ({ record }) => span(record.sentMs, record.firstByteMs),
  upstream_response_time: ({ record }) => span(record.sentMs, record.firstByteMs > 0 ? record.doneMs : 0),
  connection: ({ record }) => String(record.sourceId),
  connection_status: ({ record }) => (record.status === 0 ? 'X' : record.persists ? '+' : DASH),
  request_id: ({ record }) => record.correlation.text,
  trace_id: ({ record: { trace } }) => (trace?.isStarted ? trace.traceId : DASH),
  span_id: ({ record: { trace } }) => (trace?.isStarted && trace.isSampled ? trace.ownId : DASH),
  api: ({ record }) => record.apiName || DASH,
  error_code: ({ record }) => String(transportCode(record.errorBase, record.errorState)),
  source_state: ({ record }) => stateName(record.sourceState),
  target_state: ({ record }) => stateName(record.targetState),
  nothing: () => DASH,
} as const satisfies Record<string, Value>

export type TemplateVariable = keyof typeof VALUES
export type TemplatePart =
  | { readonly text: string }
  | { readonly variable: TemplateVariable }
  /** A request field, in lower case. */
  | { readonly field: string }

/** Longest values of variables from the network; others are short. */
const CHARS_OF: Partial<Record<TemplateVariable, number>> = {
  request: CHARS_MAX.method + CHARS_MAX.target,
  request_uri: CHARS_MAX.target,
  uri: CHARS_MAX.target,
  args: CHARS_MAX.target,
  query_string: CHARS_MAX.target,
}
const SHORT_CHARS_MAX = 512

/** Wording of lines by a template, in pure ASCII; a line ends in a line feed and is at most LINE_BYTES_MAX long. */
export function templateLines(
  parts: readonly TemplatePart[],
  escapes: 'default' | 'json',
): (record: AccessRecord, wallMs: number) => string {
  const escaped = escapes === 'json' ? escapeJson : escapeHex
  const values = parts.map((part): Value => {
    if ('text' in part) return () => part.text
    const charsMax = 'field' in part ? FIELD_CHARS_MAX : (CHARS_OF[part.variable] ?? SHORT_CHARS_MAX)
    const value = 'field' in part ? fieldValue(part.field) : VALUES[part.variable]
    return line => escaped(value(line).slice(0, charsMax))
  })
  return (record, wallMs) => {
    const line = { record, wallMs }
    let text = ''
    for (const value of values) text += value(line)
    return `${text.slice(0, LINE_BYTES_MAX - 1)}\n`
  }
}

/** Fields that a template reads, beside those that every log has. */
export function templateFields(parts: readonly TemplatePart[]): readonly string[] {
  const named = parts.flatMap(part => ('field' in part ? [part.field] : []))
  return named.filter(name => !ALWAYS.includes(name) && !isSecretName(name))
}

const ALWAYS = ['user-agent', 'referer', 'host']

function fieldValue(name: string): Value {
  if (name === 'user-agent') return ({ record }) => record.userAgent || DASH
  if (name === 'referer') return ({ record }) => redactUrl(record.referer) || DASH
  if (name === 'host') return VALUES.host
  // A field whose name says that it is a secret is not even read.
  if (isSecretName(name)) return () => MASK
  return ({ record }) => redactText(capturedValue(record.captured, name) ?? DASH)
}

function query({ requestTarget }: AccessRecord): string {
  const redacted = redactUrl(requestTarget)
  const at = redacted.indexOf('?')
  return at < 0 ? '' : redacted.slice(at + 1)
}

function stateName(state: number): string {
  return STATE_NAMES[state] ?? DASH
}

function span(fromMs: number, toMs: number): string {
  return fromMs > 0 && toMs > 0 ? seconds(Math.max(0, toMs - fromMs)) : DASH
}

/** Seconds with milliseconds, as nginx writes them. */
function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}
