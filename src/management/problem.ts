/** What the management API says no with, in the form of the reference platform's: code, message, description. */
import type { Context } from 'hono'
import { RegistryRefusal, RegistryUnavailable } from '../registry/registry.ts'

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

/** One field of a body or a query that will not do. */
interface FieldProblem {
  readonly code: string
  readonly message: string
}

/** Holds nothing that the client may not know. */
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

export function invalid(field: string, message: string): Problem {
  return new Problem(400, `${field}: ${message}`, [{ code: field, message }])
}

export function missing(what: string): Problem {
  return new Problem(404, `there is no such ${what}`)
}

const STATUS_OF = { exists: 409, missing: 404, invalid: 400, 'in use': 409 } as const

/** What went wrong in the registry, in the words of a problem; anything else as it is. */
export function problemOf(error: unknown): unknown {
  if (error instanceof RegistryRefusal) {
    const fields = error.field === '' ? [] : [{ code: error.field, message: error.message }]
    return new Problem(STATUS_OF[error.reason], error.message, fields)
  }
  if (error instanceof RegistryUnavailable) return new Problem(503, 'the database does not answer')
  return error
}

export function answerProblem(context: Context, { status, message, fields }: Problem): Response {
  if (status === 401) context.header('WWW-Authenticate', 'Basic realm="management", charset="UTF-8", Bearer')
  if (status === 429 || status === 503) context.header('Retry-After', '1')
  const told = { code: status, message: MESSAGES[status], description: message, moreInfo: '', error: fields }
  return context.json(told, status)
}
