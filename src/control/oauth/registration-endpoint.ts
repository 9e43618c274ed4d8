/**
 * `/client-registration/<version>/register`: client registration by user accounts, in the format of the reference
 * platform.
 */
import { type Context, Hono } from 'hono'
import { resolveAccountName, stripTenant } from '../../auth/account-names.ts'
import type { Client } from '../registry/entities.ts'
import { RegistryRefusal } from '../registry/registry-errors.ts'
import { isAllowedRedirectUri } from '../registry/redirect-uri.ts'
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import { authenticateUser, basicCredentials, bearerToken } from './authentication.ts'
import { readJson } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { bearerError, invalidClient, NO_STORE, OAuthError } from './oauth-error.ts'
import { countRequest } from './rate-limit.ts'
import { type Subject, userSubject } from './subjects.ts'
import { knownGrants } from './token-endpoint.ts'

const VERSIONS = ['v0.14', 'v0.15', 'v0.17']
const REGISTERING_ROLES = [ADMIN_ROLE, 'Internal/creator', 'Internal/publisher', 'Internal/subscriber']
const NAME_CHARS_MAX = 255
export const REDIRECT_URIS_MAX = 20
/** Scope of an access token that may register clients in the name of its user. */
const REGISTRATION_SCOPE = 'apim:app_manage'
const DEFAULT_GRANTS = ['client_credentials']

export type Fields = Readonly<Record<string, unknown>>

export function registrationApp(manager: KeyManager): Hono {
  const app = new Hono()
  for (const version of VERSIONS) {
    const path = `/client-registration/${version}/register`
    app.post(path, context => register(manager, context))
    app.get(`${path}/:id`, async context => {
      const client = await findOwnClient(manager, context, context.req.param('id'))
      return clientResponse(client, null)
    })
    app.put(`${path}/:id`, context => update(manager, context, context.req.param('id')))
    app.delete(`${path}/:id`, async context => {
      const client = await findOwnClient(manager, context, context.req.param('id'))
      await manager.registry.clients.remove(client.consumerKey)
      manager.introspectionCache.clear()
      return new Response(null, { status: 204, headers: NO_STORE })
    })
  }
  return app
}

async function register(manager: KeyManager, context: Context): Promise<Response> {
  const caller = await authenticateCaller(manager, context)
  const fields = await readJson(context.req.raw)
  const name = textOf(fields, 'clientName')
  if (name === '') throw invalidMetadata('clientName is missing')
  const owner = stripTenant(textOf(fields, 'owner') || caller.name, caller.tenant)
  if (owner !== caller.name && !caller.roles.includes(ADMIN_ROLE)) {
    throw new OAuthError('access_denied', 'only an administrator can register clients for other users', { status: 403 })
  }
  if ((await manager.registry.users.find(owner, caller.tenant)) === null) throw invalidMetadata('owner is not a user')
  const metadata = {
    name,
    grants: grantsOf(fields, manager) ?? DEFAULT_GRANTS,
    redirectUris: redirectUrisOf(fields) ?? [],
  }
  if (metadata.grants.includes('authorization_code') && metadata.redirectUris.length === 0) {
    throw invalidMetadata('callbackUrl is missing')
  }
  const { client, secret } = await withMetadataError(
    manager.registry.clients.create({
      ...metadata,
      applicationId: null,
      keyType: 'PRODUCTION',
      owner,
      tenant: caller.tenant,
      isPublic: flagOf(fields, 'ext_public_client') ?? false,
      tokenType: tokenTypeOf(fields) ?? 'JWT',
      validityS: 0,
    }),
  )
  return clientResponse(client, secret)
}

async function update(manager: KeyManager, context: Context, id: string): Promise<Response> {
  const client = await findOwnClient(manager, context, id)
  const fields = await readJson(context.req.raw)
  const name = textOf(fields, 'clientName') || client.name
  const grants = grantsOf(fields, manager) ?? client.grants
  const redirectUris = redirectUrisOf(fields) ?? client.redirectUris
  const tokenType = tokenTypeOf(fields) ?? client.tokenType
  if (grants.includes('authorization_code') && redirectUris.length === 0)
    throw invalidMetadata('callbackUrl is missing')
  const change = { name, grants, redirectUris, tokenType }
  return clientResponse(await withMetadataError(manager.registry.clients.update(client.consumerKey, change)), null)
}

/** A client that the caller may manage. Throws OAuthError; a client of another owner is reported as unknown. */
async function findOwnClient(manager: KeyManager, context: Context, id: string): Promise<Client> {
  const caller = await authenticateCaller(manager, context)
  const client = await manager.registry.clients.get(id)
  const isOwn = client?.owner === caller.name || caller.roles.includes(ADMIN_ROLE)
  if (client === null || client.tenant !== caller.tenant || !isOwn) {
    throw new OAuthError('invalid_client_id', 'unknown client', { status: 404 })
  }
  return client
}

/** Authenticates the account by Basic. Throws OAuthError. */
async function authenticateCaller(manager: KeyManager, context: Context): Promise<Subject> {
  const address = countRequest(manager, context)
  const credentials = basicCredentials(context.req.header('authorization') ?? null)
  if (credentials === null) throw invalidClient()
  const { tenant } = await resolveAccountName(credentials.name, () => manager.registry.tenants.list())
  const subject = await authenticateUser(manager, tenant, {
    name: credentials.name,
    password: credentials.secret,
    address,
  })
  if (subject === null) throw invalidClient()
  requireRole(subject)
  return subject
}

/** Authenticates the account by Basic, or by an access token that its user has allowed. Throws OAuthError. */
export async function authenticateRegistrant(manager: KeyManager, context: Context): Promise<Subject> {
  const token = bearerToken(context.req.raw)
  if (token === '') return authenticateCaller(manager, context)
  countRequest(manager, context)
  const issued = (await manager.registry.tokens.find(token))?.issued
  const isActive = issued?.kind === 'access' && issued.state === 'ACTIVE' && issued.expiresMs > manager.nowMs()
  const user = isActive && !issued.isApplication ? await manager.registry.users.find(issued.user, issued.tenant) : null
  if (!isActive || user === null || user.isLocked) {
    throw bearerError(401, 'invalid_token', 'an access token of a user is required')
  }
  if (!issued.scopes.includes(REGISTRATION_SCOPE)) {
    throw bearerError(403, 'insufficient_scope', `the token lacks the scope ${REGISTRATION_SCOPE}`)
  }
  const subject = userSubject(user)
  requireRole(subject)
  return subject
}

/** Throws OAuthError. */
function requireRole({ roles }: Subject): void {
  if (roles.some(role => REGISTERING_ROLES.includes(role))) return
  throw new OAuthError('access_denied', 'the account has no role to register clients', { status: 403 })
}

/** `secret`: null where it is unknown, because only its hash is stored. */
function clientResponse(client: Client, secret: string | null): Response {
  const { consumerKey, name, owner, grants, redirectUris, tokenType } = client
  const grantTypes = grants.join(' ')
  const body = {
    clientId: consumerKey,
    ...(secret !== null && { clientSecret: secret }),
    clientName: name,
    callBackURL: redirectUris.join(','),
    isSaasApplication: false,
    appOwner: owner,
    jsonString: JSON.stringify({ grant_types: grantTypes, redirect_uris: redirectUris.join(','), client_name: name }),
    jsonAppAttribute: '{}',
    applicationUUID: null,
    tokenType,
    grantType: grantTypes,
    ext_public_client: client.isPublic,
  }
  return Response.json(body, { headers: NO_STORE })
}

export function textOf(fields: Fields, name: string): string {
  const value = fields[name] ?? ''
  if (typeof value !== 'string' || value.length > NAME_CHARS_MAX)
    throw invalidMetadata(`${name} must be a string of at most ${NAME_CHARS_MAX} characters`)
  return value.trim()
}

function flagOf(fields: Fields, name: string): boolean | undefined {
  const value = fields[name]
  if (value === undefined || typeof value === 'boolean') return value
  throw invalidMetadata(`${name} must be true or false`)
}

/** The supported grants among those requested; the response lists them (RFC 7591 3.2.1). */
function grantsOf({ grantType }: Fields, { settings }: KeyManager): readonly string[] | undefined {
  if (grantType === undefined) return undefined
  const named = typeof grantType === 'string' ? grantType.split(/[ ,]+/) : []
  const known = knownGrants(settings).filter(grant => named.includes(grant))
  if (known.length === 0) throw invalidMetadata('grantType names no supported grant')
  return known
}

function redirectUrisOf({ callbackUrl }: Fields): readonly string[] | undefined {
  if (callbackUrl === undefined || callbackUrl === null) return undefined
  if (typeof callbackUrl !== 'string') throw invalidMetadata('callbackUrl must be a string')
  const uris = callbackUrl.split(/[\s,]+/).filter(uri => uri !== '')
  if (uris.length <= REDIRECT_URIS_MAX && uris.every(isAllowedRedirectUri)) return uris
  throw new OAuthError('invalid_redirect_uri', 'callbackUrl must be https, http to localhost, or a private-use scheme')
}

function tokenTypeOf({ tokenType }: Fields): 'JWT' | 'OPAQUE' | undefined {
  if (tokenType === undefined) return undefined
  if (tokenType === 'JWT' || tokenType === 'DEFAULT') return 'JWT'
  if (tokenType === 'OPAQUE') return 'OPAQUE'
  throw invalidMetadata('tokenType must be DEFAULT, JWT or OPAQUE')
}

export function invalidMetadata(description: string): OAuthError {
  return new OAuthError('invalid_client_metadata', description)
}

export async function withMetadataError<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    if (error instanceof RegistryRefusal) throw invalidMetadata(`invalid ${error.field || 'client'}`)
    throw error
  }
}
