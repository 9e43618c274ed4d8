/** Reads and validates authorization requests (RFC 6749 4.1.1, RFC 7636 4.3, OpenID Connect Core 3.1.2.1). */
import type { Client } from '../registry/entities.ts'
import { type Form, parseForm } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthError, type OAuthErrorCode } from './oauth-error.ts'
import { isAllowedRedirectUri } from '../registry/redirect-uri.ts'
import { readScopes } from './scopes.ts'

/** Limit of state, nonce and login_hint, which are returned or shown. */
const TEXT_CHARS_MAX = 2048
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const PROMPTS = ['none', 'login', 'consent', 'select_account']

/** Where the authorization response goes, with the state that it repeats. */
export interface RedirectTarget {
  /** Registered by the client, compared character by character. */
  readonly redirectUri: string
  readonly state: string
}

export interface AuthorizationRequest extends RedirectTarget {
  /** The query as received, which forms carry so that it is validated again. */
  readonly query: string
  readonly client: Client
  /** As the request named it; '' where it named none. */
  readonly namedRedirectUri: string
  readonly scopes: readonly string[]
  readonly challenge: string
  readonly nonce: string
  readonly prompts: readonly string[]
  /** Maximum seconds since the login; -1 for no limit. */
  readonly maxAgeS: number
  readonly loginHint: string
}

/** An error that is returned to the client by redirect: its redirect URI is verified. */
export class AuthorizationError extends Error {
  override readonly name = 'AuthorizationError'
  readonly code: OAuthErrorCode
  readonly target: RedirectTarget

  constructor(code: OAuthErrorCode, description: string, target: RedirectTarget) {
    super(description)
    this.code = code
    this.target = target
  }
}

/** Throws AuthorizationError, or OAuthError where no redirect URI is verified (RFC 6749 4.1.2.1). */
export async function readAuthorizationRequest(manager: KeyManager, query: string): Promise<AuthorizationRequest> {
  const form = parseForm(query)
  const client = await manager.registry.clients.get(form.text('client_id'))
  if (client === null) throw new OAuthError('invalid_client', 'unknown client')
  const namedRedirectUri = form.text('redirect_uri')
  const target = { redirectUri: verifiedRedirectUri(client, namedRedirectUri), state: form.text('state') }
  const error = validationError(manager, client, form)
  if (error !== undefined) throw new AuthorizationError(...error, target)
  return {
    ...target,
    query,
    client,
    namedRedirectUri,
    scopes: scopesOf(form, target),
    challenge: form.text('code_challenge'),
    nonce: form.text('nonce'),
    prompts: promptsOf(form),
    maxAgeS: form.text('max_age') === '' ? -1 : Number(form.text('max_age')),
    loginHint: form.text('login_hint'),
  }
}

/** Throws OAuthError: a URI that is not registered never receives a response (RFC 9700 4.1.3). */
function verifiedRedirectUri({ redirectUris }: Client, named: string): string {
  const uri = named === '' && redirectUris.length === 1 ? redirectUris[0]! : named
  if (redirectUris.includes(uri) && isAllowedRedirectUri(uri)) return uri
  throw new OAuthError('invalid_request', 'redirect_uri is not registered')
}

function validationError(
  manager: KeyManager,
  client: Client,
  form: Form,
): readonly [OAuthErrorCode, string] | undefined {
  if (form.text('request') !== '') return ['request_not_supported', 'the request parameter is not supported']
  if (form.text('request_uri') !== '')
    return ['request_uri_not_supported', 'the request_uri parameter is not supported']
  if (form.text('response_type') === '') return ['invalid_request', 'response_type is missing']
  const isEnabled = manager.settings.grants.authorizationCode
  if (form.text('response_type') !== 'code' || !isEnabled)
    return ['unsupported_response_type', 'response_type must be code']
  if (!client.grants.includes('authorization_code'))
    return ['unauthorized_client', 'the client is not registered for authorization_code']
  if (!['', 'query'].includes(form.text('response_mode'))) return ['invalid_request', 'response_mode must be query']
  const isLong = ['state', 'nonce', 'login_hint'].some(name => form.text(name).length > TEXT_CHARS_MAX)
  if (isLong) return ['invalid_request', 'a parameter is too long']
  if (!/^\d{0,9}$/.test(form.text('max_age'))) return ['invalid_request', 'max_age is not a number of seconds']
  return challengeError(client, form) ?? promptError(promptsOf(form))
}

/** RFC 9700 2.1.1: plain challenges are refused, and public clients must send a challenge. */
function challengeError({ isPublic }: Client, form: Form): readonly [OAuthErrorCode, string] | undefined {
  const challenge = form.text('code_challenge')
  const method = form.text('code_challenge_method')
  if (challenge === '' && method === '') {
    return isPublic ? ['invalid_request', 'code_challenge is missing'] : undefined
  }
  if (method !== 'S256') return ['invalid_request', 'code_challenge_method must be S256']
  return CHALLENGE.test(challenge) ? undefined : ['invalid_request', 'code_challenge is not an S256 challenge']
}

function promptsOf(form: Form): readonly string[] {
  return form
    .text('prompt')
    .split(' ')
    .filter(prompt => prompt !== '')
}

function promptError(prompts: readonly string[]): readonly [OAuthErrorCode, string] | undefined {
  if (prompts.some(prompt => !PROMPTS.includes(prompt))) return ['invalid_request', 'prompt has an unknown value']
  const isContradictory = prompts.includes('none') && prompts.length > 1
  return isContradictory ? ['invalid_request', 'prompt none excludes other values'] : undefined
}

/** Reports a malformed scope to the client. */
function scopesOf(form: Form, target: RedirectTarget): readonly string[] {
  try {
    return readScopes(form.text('scope'))
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    throw new AuthorizationError(error.code, error.message, target)
  }
}
