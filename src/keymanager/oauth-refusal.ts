/** What an endpoint refuses, and how it says so (RFC 6749 5.2). */

/** Codes of RFC 6749 4.1.2.1 and 5.2, RFC 6750 3.1, RFC 7591 3.2.2, OpenID Connect Core 3.1.2.6. */
export type RefusalCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'access_denied'
  | 'invalid_client_metadata'
  | 'invalid_redirect_uri'
  | 'invalid_client_id'
  | 'login_required'
  | 'consent_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'temporarily_unavailable'
  | 'server_error'

interface Terms {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Its message is `error_description`: printable ASCII without quotes and backslashes (RFC 6749 5.2). */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal'
  readonly code: RefusalCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: RefusalCode, description: string, { status = 400, headers = {} }: Terms = {}) {
    super(description)
    this.code = code
    this.status = status
    this.headers = headers
  }
}

/** RFC 6749 5.1: nothing between here and the client may keep it. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }

export function refusalAnswer({ code, message, status, headers }: OAuthRefusal): Response {
  return Response.json({ error: code, error_description: message }, { status, headers: { ...NO_STORE, ...headers } })
}

/** Whatever was wrong with it: a client that must not be told more is told the same. */
export function invalidClient(): OAuthRefusal {
  const headers = { 'WWW-Authenticate': 'Basic realm="oauth2", charset="UTF-8"' }
  return new OAuthRefusal('invalid_client', 'client authentication failed', { status: 401, headers })
}

/** `forMs`: until it is worth another try. */
export function tooMany(description: string, forMs: number): OAuthRefusal {
  const headers = { 'Retry-After': String(Math.max(1, Math.ceil(forMs / 1000))) }
  return new OAuthRefusal('temporarily_unavailable', description, { status: 429, headers })
}
