/** What `/oauth2/authorize` is asked for (RFC 6749 4.1.1, RFC 7636 4.3, OpenID Connect Core 3.1.2.1). */
import type { Client } from '../registry/entities.ts'
import { type Form, parseForm } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { OAuthRefusal, type RefusalCode } from './oauth-refusal.ts'
import { mayReceiveCodes } from '../registry/redirect-uri.ts'
import { readScopes } from './scopes.ts'

/** Of state, nonce and login_hint: they come back, or are shown. */
const TEXT_CHARS_MAX = 2048
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const PROMPTS = ['none', 'login', 'consent', 'select_account']

/** Where an answer goes, and what it has to repeat. */
export interface ReturnAddress {
  /** Registered, compared character by character. */
  readonly redirectUri: string
  readonly state: string
}

export interface AuthorizationRequest extends ReturnAddress {
  /** As it came: what forms carry along, to be judged again. */
  readonly query: string
  readonly client: Client
  /** '' where the request left it to the registration. */
  readonly namedRedirectUri: string
  readonly scopes: readonly string[]
  readonly challenge: string
  readonly nonce: string
  readonly prompts: readonly string[]
  /** Seconds since the user has logged in, at most; -1: not said. */
  readonly maxAgeS: number
  readonly loginHint: string
}

/** The client is to be told: its address is known to be its own. */
export class ToldToClient extends Error {
  override readonly name = 'ToldToClient'
  readonly code: RefusalCode
  readonly to: ReturnAddress

  constructor(code: RefusalCode, description: string, to: ReturnAddress) {
    super(description)
    this.code = code
    this.to = to
  }
}

/** Throws ToldToClient, and OAuthRefusal where there is no address to tell it to (RFC 6749 4.1.2.1). */
export async function readAuthorizationRequest(manager: KeyManager, query: string): Promise<AuthorizationRequest> {
  const form = parseForm(query)
  const client = await manager.registry.clients.get(form.text('client_id'))
  if (client === null) throw new OAuthRefusal('invalid_client', 'there is no such client')
  const namedRedirectUri = form.text('redirect_uri')
  const to = { redirectUri: ownRedirectUri(client, namedRedirectUri), state: form.text('state') }
  const fault = faultOf(manager, client, form)
  if (fault !== undefined) throw new ToldToClient(...fault, to)
  return {
    ...to,
    query,
    client,
    namedRedirectUri,
    scopes: scopesOf(form, to),
    challenge: form.text('code_challenge'),
    nonce: form.text('nonce'),
    prompts: promptsOf(form),
    maxAgeS: form.text('max_age') === '' ? -1 : Number(form.text('max_age')),
    loginHint: form.text('login_hint'),
  }
}

/** Throws OAuthRefusal: whatever is not registered gets no answer at all (RFC 9700 4.1.3). */
function ownRedirectUri({ redirectUris }: Client, named: string): string {
  const uri = named === '' && redirectUris.length === 1 ? redirectUris[0]! : named
  if (redirectUris.includes(uri) && mayReceiveCodes(uri)) return uri
  throw new OAuthRefusal('invalid_request', 'redirect_uri is not registered')
}

function faultOf(manager: KeyManager, client: Client, form: Form): readonly [RefusalCode, string] | undefined {
  if (form.text('request') !== '') return ['request_not_supported', 'requests by value are not taken']
  if (form.text('request_uri') !== '') return ['request_uri_not_supported', 'requests by reference are not taken']
  if (form.text('response_type') === '') return ['invalid_request', 'response_type is missing']
  const isEnabled = manager.settings.grants.authorizationCode
  if (form.text('response_type') !== 'code' || !isEnabled) return ['unsupported_response_type', 'only codes are given']
  if (!client.grants.includes('authorization_code')) return ['unauthorized_client', 'not registered for codes']
  if (!['', 'query'].includes(form.text('response_mode'))) return ['invalid_request', 'response_mode must be query']
  const isLong = ['state', 'nonce', 'login_hint'].some(name => form.text(name).length > TEXT_CHARS_MAX)
  if (isLong) return ['invalid_request', 'a parameter is too long']
  if (!/^\d{0,9}$/.test(form.text('max_age'))) return ['invalid_request', 'max_age is not a number of seconds']
  return challengeFault(client, form) ?? promptFault(promptsOf(form))
}

/** RFC 9700 2.1.1: a plain challenge is no proof, and whoever has no secret has to bring a challenge. */
function challengeFault({ isPublic }: Client, form: Form): readonly [RefusalCode, string] | undefined {
  const challenge = form.text('code_challenge')
  const method = form.text('code_challenge_method')
  if (challenge === '' && method === '') {
    return isPublic ? ['invalid_request', 'code_challenge is missing'] : undefined
  }
  if (method !== 'S256') return ['invalid_request', 'code_challenge_method must be S256']
  return CHALLENGE.test(challenge) ? undefined : ['invalid_request', 'code_challenge is not one of S256']
}

function promptsOf(form: Form): readonly string[] {
  return form
    .text('prompt')
    .split(' ')
    .filter(prompt => prompt !== '')
}

function promptFault(prompts: readonly string[]): readonly [RefusalCode, string] | undefined {
  if (prompts.some(prompt => !PROMPTS.includes(prompt))) return ['invalid_request', 'prompt is not known']
  const isContradictory = prompts.includes('none') && prompts.length > 1
  return isContradictory ? ['invalid_request', 'prompt none goes with nothing else'] : undefined
}

function scopesOf(form: Form, to: ReturnAddress): readonly string[] {
  try {
    return readScopes(form.text('scope'))
  } catch (error) {
    if (!(error instanceof OAuthRefusal)) throw error
    throw new ToldToClient(error.code, error.message, to)
  }
}
