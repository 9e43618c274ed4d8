/** Error responses of the admin API, in the format of the reference platform: code, message, description. */
import type { Context } from 'hono'
import { RegistryRefusal, RegistryUnavailable } from '../registry/registry-errors.ts'

type ProblemStatus = 400 | 401 | 403 | 404 | 409 | 413 | 415 | 421 | 429 | 500 | 503

const MESSAGES: Readonly<Record<ProblemStatus, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

/** An invalid field of a body or query. */
interface FieldProblem {
  readonly code: string
  readonly message: string
}

/** A refused request. Its message is shown to the client. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly status: ProblemStatus
  readonly fields: readonly FieldProblem[]

  constructor(status: ProblemStatus, description: string, fields: readonly FieldProblem[] = []) {
    super(description)
    this.status = status
    this.fields = fields
  }
}

export function invalidProblem(field: string, message: string): Problem {
  return new Problem(400, `${field}: ${message}`, [{ code: field, message }])
}

export function notFoundProblem(subject: string): Problem {
  return new Problem(404, `unknown ${subject}`)
}

const STATUS_BY_REASON = { exists: 409, missing: 404, invalid: 400, 'in use': 409 } as const

/** Maps registry errors to problems; returns other errors unchanged. */
export function problemOf(error: unknown): unknown {
  if (error instanceof RegistryRefusal) {
    const fields = error.field === '' ? [] : [{ code: error.field, message: error.message }]
    return new Problem(STATUS_BY_REASON[error.reason], error.message, fields)
  }
  if (error instanceof RegistryUnavailable) return new Problem(503, 'the database is unavailable')
  return error
}

export function problemResponse(context: Context, { status, message, fields }: Problem): Response {
  if (status === 401) context.header('WWW-Authenticate', 'Basic realm="management", charset="UTF-8", Bearer')
  if (status === 429 || status === 503) context.header('Retry-After', '1')
  const body = { code: status, message: MESSAGES[status], description: message, moreInfo: '', error: fields }
  return context.json(body, status)
}
