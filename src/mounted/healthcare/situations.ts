/**
 * Situations that clients of the API are told of: status, severity and code of the issue, and the codes that the
 * gateway has for them. Statuses are those of the specification where it lists the code, else those of R4 (http.html).
 * A head that cannot be parsed has no API and no situation: its refusal is the fault of any API (D474).
 */
import type { Issue, IssueCode, Severity } from './outcome.ts'

interface SituationRow {
  readonly status: number
  /** Codes of the gateway that mean the situation, whoever raises them; [] where only the API raises it. */
  readonly gatewayCodes: readonly number[]
  readonly severity: Severity
  readonly code: IssueCode
  readonly text: string
}

type RowMaker = (status: number, code: IssueCode, text: string, ...gatewayCodes: number[]) => SituationRow

const error: RowMaker = (status, code, text, ...gatewayCodes) => {
  return { status, gatewayCodes, severity: 'error', code, text }
}
const fatal: RowMaker = (...row) => ({ ...error(...row), severity: 'fatal' })

export const SITUATIONS = {
  // The body.
  'json-syntax': fatal(400, 'invalid', 'The body is not JSON', 102520),
  'body-incomplete': fatal(400, 'incomplete', 'The body is incomplete', 102511),
  'resource-structure': error(400, 'structure', 'The resource is malformed'),
  'resource-rules': error(422, 'invariant', 'The resource breaks a rule'),
  'id-mismatch': error(400, 'value', 'The id of the resource is not that of the URL'),
  'type-mismatch': error(400, 'value', 'The resource has another type than the URL'),
  'patch-malformed': error(400, 'structure', 'The patch is malformed'),
  'patch-not-applicable': error(422, 'processing', 'The patch cannot be applied'),
  'body-too-large': error(413, 'too-long', 'The body is too large', 102521, 102530, 102573),
  // The URL and the header fields.
  'request-malformed': error(400, 'invalid', 'The request is malformed', 400, 101001, 102560),
  'parameter-value': error(400, 'value', 'The value of a parameter is malformed'),
  'parameter-not-supported': error(400, 'not-supported', 'The server does not support this'),
  'too-costly': error(400, 'too-costly', 'The search is too costly'),
  'not-found': error(404, 'not-found', 'Nothing is known under this URL', 404),
  'no-resource': error(403, 'not-found', 'The API has no such operation', 900906),
  deleted: error(410, 'deleted', 'The resource is deleted'),
  'method-not-allowed': error(405, 'not-supported', 'The method is not offered here', 405),
  'not-acceptable': error(406, 'not-supported', 'The server makes no such media type'),
  'media-type': error(415, 'not-supported', 'The server takes no such media type', 102522),
  'url-too-long': error(414, 'too-long', 'The URL is too long'),
  // Versions.
  'version-conflict': error(412, 'conflict', 'The resource has another version'),
  'multiple-matches': error(412, 'multiple-matches', 'Several resources match'),
  duplicate: error(409, 'duplicate', 'The resource exists'),
  // The caller.
  'no-credentials': error(401, 'login', 'The request has no token', 900902),
  'bad-credentials': error(
    401,
    'unknown',
    'The token is unknown, expired, revoked, or not for this API',
    900901,
    900905,
    900911,
  ),
  'inactive-subscription': error(
    401,
    'forbidden',
    'The subscription to the API does not allow the request',
    900907,
    900909,
  ),
  'scope-missing': error(403, 'forbidden', 'The token has none of the scopes of the operation', 900908, 900910),
  'policy-refusal': error(403, 'forbidden', 'A policy refuses the request', 102555),
  throttled: error(429, 'throttled', 'Too many requests', 900800, 900802, 900803, 900804, 900805, 900806, 900807),
  'throttled-api': error(503, 'throttled', 'The API has too many requests', 900801),
  // The server.
  'request-timeout': error(408, 'timeout', 'The request took too long', 408),
  exception: fatal(500, 'exception', 'The server failed', 500, 900900, 102570, 102571),
  overload: error(
    503,
    'transient',
    'The server has too much to do, or is closed for a time',
    700700,
    102533,
    102540,
    102541,
    102574,
  ),
  timeout: error(504, 'timeout', 'The server did not answer in time', 101504, 101508, 102542, 102572),
}

export type Situation = keyof typeof SITUATIONS

/** Issue codes of statuses, for codes of the gateway without a row, which other APIs have too. */
const CODE_OF_STATUS: Readonly<Record<number, IssueCode>> = {
  ...{ 400: 'invalid', 401: 'login', 403: 'forbidden', 404: 'not-found', 405: 'not-supported', 406: 'not-supported' },
  ...{ 408: 'timeout', 409: 'conflict', 410: 'deleted', 412: 'conflict', 413: 'too-long', 414: 'too-long' },
  ...{ 415: 'not-supported', 422: 'processing', 429: 'throttled', 431: 'too-long', 446: 'suppressed' },
  ...{ 500: 'exception', 501: 'not-supported', 502: 'transient', 503: 'transient', 504: 'timeout' },
}

const ROWS: readonly SituationRow[] = Object.values(SITUATIONS)
const ROW_OF_CODE = new Map(ROWS.flatMap(row => row.gatewayCodes.map(code => [code, row] as const)))

/** The issue of a situation. `more`: what is special in this case. */
export function situationIssue(situation: Situation, more: Partial<Issue> = {}): Issue {
  const { severity, code, text } = SITUATIONS[situation]
  return { severity, code, detail: situation, text, ...more }
}

/**
 * The issue for a refusal of the gateway itself: its code becomes the detail, its description the diagnostics.
 * `status`: the one that the gateway has chosen, which stays.
 */
export function gatewayIssue(gatewayCode: number, status: number, description: string): Issue {
  const row = ROW_OF_CODE.get(gatewayCode)
  const code = row?.code ?? CODE_OF_STATUS[status] ?? (status < 500 ? 'processing' : 'exception')
  const severity = row?.severity ?? (status < 500 ? 'error' : 'fatal')
  return { severity, code, detail: String(gatewayCode), text: row?.text ?? description, diagnostics: description }
}

/**
 * The situation of a resource with errors: 400 for faults of its structure and values, 422 where it only breaks rules
 * (R4, http.html#create).
 */
export function situationOfResource(issues: readonly Issue[]): Situation {
  const rules: readonly IssueCode[] = ['invariant', 'business-rule']
  const errors = issues.filter(({ severity }) => severity === 'error' || severity === 'fatal')
  return errors.every(({ code }) => rules.includes(code)) ? 'resource-rules' : 'resource-structure'
}
