/** Error responses of the OAuth endpoints (RFC 6749 5.2). */

/** Codes of RFC 6749 4.1.2.1 and 5.2, RFC 6750 3.1, RFC 7591 3.2.2, OpenID Connect Core 3.1.2.6. */
export type OAuthErrorCode =
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

interface OAuthErrorOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * A refused request. The message is `error_description`: printable ASCII without quotes and backslashes (RFC 6749 5.2).
 */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthErrorCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: OAuthErrorCode, description: string, { status = 400, headers = {} }: OAuthErrorOptions = {}) {
    super(description)
    this.code = code
    this.status = status
    this.headers = headers
  }
}

/** True where the client is to blame; false where the key manager, its database or a module has failed. */
export function isRefusal(error: unknown): boolean {
  return error instanceof OAuthError && error.status < 500
}

/** RFC 6749 5.1: no cache may store the response. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }

export function errorResponse({ code, message, status, headers }: OAuthError): Response {
  return Response.json({ error: code, error_description: message }, { status, headers: { ...NO_STORE, ...headers } })
}

/** One response for every failed authentication: it never reveals whether the client exists. */
export function invalidClient(): OAuthError {
  const headers = { 'WWW-Authenticate': 'Basic realm="oauth2", charset="UTF-8"' }
  return new OAuthError('invalid_client', 'client authentication failed', { status: 401, headers })
}

/** RFC 6750 3. */
export function bearerError(status: number, code: OAuthErrorCode, description: string): OAuthError {
  const header = `Bearer realm="oauth2", error="${code}", error_description="${description}"`
  return new OAuthError(code, description, { status, headers: { 'WWW-Authenticate': header } })
}

/** `forMs`: time until a retry can succeed. */
export function tooManyRequests(description: string, forMs: number): OAuthError {
  const headers = { 'Retry-After': String(Math.max(1, Math.ceil(forMs / 1000))) }
  return new OAuthError('temporarily_unavailable', description, { status: 429, headers })
}
