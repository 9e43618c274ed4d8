/**
 * `/oauth2/register`: dynamic client registration (RFC 7591), and management of what was registered with the
 * registration access token (RFC 7592). Metadata that has no effect here is ignored, as RFC 7591 2 asks.
 */
import { type Context, Hono } from 'hono'
import { networkOf } from '../../runtime/ip-address.ts'
import type { Client, ClientRegistration } from '../registry/entities.ts'
import { isAllowedRedirectUri } from '../registry/redirect-uri.ts'
import { bearerToken } from './authentication.ts'
import { readJson } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { bearerError, NO_STORE, OAuthError } from './oauth-error.ts'
import { countRequest } from './rate-limit.ts'
import {
  authenticateRegistrant,
  type Fields,
  invalidMetadata,
  REDIRECT_URIS_MAX,
  textOf,
  withMetadataError,
} from './registration-endpoint.ts'
import { knownGrants } from './token-endpoint.ts'

const PATH = '/oauth2/register'
const AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'none'] as const
const DEFAULT_NAME = 'client'
/** Metadata of which only one value works here (OpenID Connect Dynamic Client Registration 1.0, 2). */
const ONLY: Readonly<Record<string, string>> = { subject_type: 'public', id_token_signed_response_alg: 'RS256' }
/** RFC 7592 2.2: an update must not contain them. */
const SERVER_FIELDS = [
  ...['registration_access_token', 'registration_client_uri', 'client_secret_expires_at', 'client_id_issued_at'],
]

interface Metadata {
  readonly name: string
  readonly grants: readonly string[]
  readonly redirectUris: readonly string[]
  readonly registration: Pick<ClientRegistration, 'authMethod' | 'logoutUris'>
}

export function dynamicRegistrationApp(manager: KeyManager): Hono {
  const app = new Hono()
  app.post(PATH, context => register(manager, context))
  app.get(`${PATH}/:id`, async context => {
    const { client, registration, token } = await findRegistered(manager, context)
    return informationResponse(manager, client, registration, { token, secret: '', status: 200 })
  })
  app.put(`${PATH}/:id`, context => update(manager, context))
  app.delete(`${PATH}/:id`, async context => {
    const { client } = await findRegistered(manager, context)
    await manager.registry.clients.remove(client.consumerKey)
    manager.introspectionCache.clear()
    manager.report('info', 'client removed', { CONSUMER_KEY: client.consumerKey })
    return new Response(null, { status: 204, headers: NO_STORE })
  })
  return app
}

/** The initial access token (RFC 7591 3) is a user's access token; the account's name and password do as well. */
async function register(manager: KeyManager, context: Context): Promise<Response> {
  const { name: owner, tenant } = await authenticateRegistrant(manager, context)
  const fields = await readJson(context.req.raw)
  const { name, grants, redirectUris, registration } = metadataOf(fields, manager)
  const { client, secret, registrationToken } = await withMetadataError(
    manager.registry.clients.create(
      {
        ...{ name, grants, redirectUris, owner, tenant },
        applicationId: null,
        keyType: 'PRODUCTION',
        isPublic: registration.authMethod === 'none',
        tokenType: 'JWT',
        validityS: 0,
      },
      registration,
    ),
  )
  manager.report('info', 'client registered', { USER: owner, TENANT: tenant, CONSUMER_KEY: client.consumerKey })
  const created = { ...registration, createdMs: manager.nowMs() }
  return informationResponse(manager, client, created, { token: registrationToken, secret, status: 201 })
}

/** RFC 7592 2.2: the new metadata replaces the old as a whole. */
async function update(manager: KeyManager, context: Context): Promise<Response> {
  const { client, registration, token } = await findRegistered(manager, context)
  const fields = await readJson(context.req.raw)
  const named = SERVER_FIELDS.find(field => Object.hasOwn(fields, field))
  if (named !== undefined) throw new OAuthError('invalid_request', `${named} cannot be set`)
  if (fields.client_id !== client.consumerKey) throw new OAuthError('invalid_request', 'client_id is another one')
  const { client_secret: secret } = fields
  if (secret !== undefined) {
    const isOwn =
      typeof secret === 'string' && (await manager.registry.clients.authenticate(client.consumerKey, secret))
    if (!isOwn) throw new OAuthError('invalid_request', 'client_secret is another one')
  }
  const changed = metadataOf(fields, manager)
  if ((changed.registration.authMethod === 'none') !== client.isPublic)
    throw invalidMetadata('token_endpoint_auth_method: a client stays public or confidential')
  const { name, grants, redirectUris } = changed
  const updated = await withMetadataError(
    manager.registry.clients.update(client.consumerKey, { name, grants, redirectUris }),
  )
  await manager.registry.clients.updateRegistration(client.consumerKey, changed.registration)
  const { createdMs } = registration
  return informationResponse(
    manager,
    updated,
    { ...changed.registration, createdMs },
    { token, secret: '', status: 200 },
  )
}

/** RFC 7592 2: an unknown client and a wrong token get the same 401. Throws OAuthError. */
async function findRegistered(manager: KeyManager, context: Context) {
  const address = countRequest(manager, context)
  const token = bearerToken(context.req.raw)
  if (token === '') throw bearerError(401, 'invalid_token', 'the registration access token is required')
  const { limits } = manager.settings
  const id = context.req.param('id') ?? ''
  const key = `registration ${id}\n${networkOf(address)}`
  manager.lockout.check(key, limits.failures)
  const found = await manager.registry.clients.findByRegistrationToken(id, token)
  if (found === null) {
    manager.lockout.failed(key, limits.failures, limits.lockoutMs)
    throw bearerError(401, 'invalid_token', 'the registration access token is invalid')
  }
  manager.lockout.succeeded(key)
  return { ...found, token }
}

/** Validates client metadata (RFC 7591 2). Throws OAuthError. */
function metadataOf(fields: Fields, manager: KeyManager): Metadata {
  const authMethod = (textOf(fields, 'token_endpoint_auth_method') || AUTH_METHODS[0]) as (typeof AUTH_METHODS)[number]
  if (!AUTH_METHODS.includes(authMethod))
    throw invalidMetadata(`token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}`)
  for (const [name, only] of Object.entries(ONLY)) {
    if (textOf(fields, name) !== '' && textOf(fields, name) !== only) throw invalidMetadata(`${name} must be ${only}`)
  }
  const grants = grantsOf(fields, authMethod === 'none', manager)
  const responseTypes = textsOf(fields, 'response_types') ?? []
  if (responseTypes.some(type => type !== 'code')) throw invalidMetadata('response_types must be code')
  const usesCode = grants.includes('authorization_code')
  // RFC 7591 2.1: the two lists are consistent.
  if (responseTypes.length > 0 && !usesCode) throw invalidMetadata('response_types needs grant type authorization_code')
  const redirectUris = urisOf(fields, 'redirect_uris')
  if (usesCode && redirectUris.length === 0) throw new OAuthError('invalid_redirect_uri', 'redirect_uris is missing')
  const logoutUris = urisOf(fields, 'post_logout_redirect_uris')
  const name = textOf(fields, 'client_name') || DEFAULT_NAME
  return { name, grants, redirectUris, registration: { authMethod, logoutUris } }
}

/** Unknown grants are left out, and the response says so (RFC 7591 2). */
function grantsOf(fields: Fields, isPublic: boolean, { settings }: KeyManager): readonly string[] {
  const named = textsOf(fields, 'grant_types') ?? ['authorization_code']
  const known = knownGrants(settings).filter(grant => named.includes(grant))
  if (known.length === 0) throw invalidMetadata('grant_types names no supported grant')
  // RFC 6749 4.4: client credentials are for confidential clients.
  if (isPublic && known.includes('client_credentials'))
    throw invalidMetadata('a client without a secret cannot use client_credentials')
  return known
}

function urisOf(fields: Fields, name: string): readonly string[] {
  const uris = textsOf(fields, name) ?? []
  if (uris.length <= REDIRECT_URIS_MAX && uris.every(isAllowedRedirectUri)) return uris
  const message = `${name} must be https, http to localhost, or a private-use scheme; ${REDIRECT_URIS_MAX} at most`
  throw new OAuthError('invalid_redirect_uri', message)
}

/** Undefined for an omitted list; RFC 7592 2.2 reads null as omitted. */
function textsOf(fields: Fields, name: string): readonly string[] | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (Array.isArray(value) && value.every(each => typeof each === 'string')) return [...new Set(value as string[])]
  throw invalidMetadata(`${name} must be a list of strings`)
}

interface Disclosed {
  /** The registration access token. */
  readonly token: string
  /** '' where only its hash is known. */
  readonly secret: string
  readonly status: 200 | 201
}

/** Client information response (RFC 7591 3.2.1, RFC 7592 3). */
function informationResponse(
  { origin }: KeyManager,
  { consumerKey, name, grants, redirectUris }: Client,
  { authMethod, logoutUris, createdMs }: ClientRegistration,
  { token, secret, status }: Disclosed,
): Response {
  const body = {
    client_id: consumerKey,
    ...(secret !== '' && { client_secret: secret, client_secret_expires_at: 0 }),
    client_id_issued_at: Math.floor(createdMs / 1000),
    registration_access_token: token,
    registration_client_uri: `${origin}${PATH}/${encodeURIComponent(consumerKey)}`,
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: grants,
    response_types: grants.includes('authorization_code') ? ['code'] : [],
    token_endpoint_auth_method: authMethod,
    post_logout_redirect_uris: logoutUris,
  }
  return Response.json(body, { status, headers: NO_STORE })
}
