/** `/client-registration/<version>/register`: accounts register clients, as the reference platform words it. */
import { type Context, Hono } from 'hono'
import { accountNamed, withoutTenant } from '../config/account-names.ts'
import type { Client } from '../registry/entities.ts'
import { RegistryRefusal } from '../registry/registry.ts'
import { mayReceiveCodes } from '../registry/redirect-uri.ts'
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import { admitAddress } from './client-address.ts'
import { basicCredentials } from './client-authentication.ts'
import { readJson } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { invalidClient, NO_STORE, OAuthRefusal } from './oauth-refusal.ts'
import { logIn } from './log-in.ts'
import type { Subject } from './subjects.ts'
import { KNOWN_GRANTS } from './token-endpoint.ts'

const VERSIONS = ['v0.14', 'v0.15', 'v0.17']
const REGISTERING_ROLES = [ADMIN_ROLE, 'Internal/creator', 'Internal/publisher', 'Internal/subscriber']
const NAME_CHARS_MAX = 255
const REDIRECT_URIS_MAX = 20
const DEFAULT_GRANTS = ['client_credentials']

type Fields = Readonly<Record<string, unknown>>

export function registrationApp(manager: KeyManager): Hono {
  const app = new Hono()
  for (const version of VERSIONS) {
    const path = `/client-registration/${version}/register`
    app.post(path, context => register(manager, context))
    app.get(`${path}/:id`, async context => {
      const { client } = await ownClient(manager, context, context.req.param('id'))
      return answer(client, null)
    })
    app.put(`${path}/:id`, context => update(manager, context, context.req.param('id')))
    app.delete(`${path}/:id`, async context => {
      const { client } = await ownClient(manager, context, context.req.param('id'))
      await manager.registry.clients.remove(client.consumerKey)
      manager.memory.clear()
      return new Response(null, { status: 204, headers: NO_STORE })
    })
  }
  return app
}

async function register(manager: KeyManager, context: Context): Promise<Response> {
  const caller = await authenticateCaller(manager, context)
  const fields = await readJson(context.req.raw)
  const name = textOf(fields, 'clientName')
  if (name === '') throw wrong('clientName is missing')
  const owner = withoutTenant(textOf(fields, 'owner') || caller.name, caller.tenant)
  if (owner !== caller.name && !caller.roles.includes(ADMIN_ROLE)) {
    throw new OAuthRefusal('access_denied', 'only an administrator registers for others', { status: 403 })
  }
  if ((await manager.registry.users.find(owner, caller.tenant)) === null) throw wrong('owner is no user')
  const described = { name, grants: grantsOf(fields) ?? DEFAULT_GRANTS, redirectUris: redirectUrisOf(fields) ?? [] }
  if (described.grants.includes('authorization_code') && described.redirectUris.length === 0) {
    throw wrong('callbackUrl is missing')
  }
  const { client, secret } = await telling(
    manager.registry.clients.create({
      ...described,
      applicationId: null,
      keyType: 'PRODUCTION',
      owner,
      tenant: caller.tenant,
      isPublic: flagOf(fields, 'ext_public_client') ?? false,
      tokenType: tokenTypeOf(fields) ?? 'JWT',
      validityS: 0,
    }),
  )
  return answer(client, secret)
}

async function update(manager: KeyManager, context: Context, id: string): Promise<Response> {
  const { client } = await ownClient(manager, context, id)
  const fields = await readJson(context.req.raw)
  const name = textOf(fields, 'clientName') || client.name
  const grants = grantsOf(fields) ?? client.grants
  const redirectUris = redirectUrisOf(fields) ?? client.redirectUris
  const tokenType = tokenTypeOf(fields) ?? client.tokenType
  if (grants.includes('authorization_code') && redirectUris.length === 0) throw wrong('callbackUrl is missing')
  const change = { name, grants, redirectUris, tokenType }
  return answer(await telling(manager.registry.clients.update(client.consumerKey, change)), null)
}

/** Throws OAuthRefusal: also where it is another's, who must not learn that it is there. */
async function ownClient(manager: KeyManager, context: Context, id: string) {
  const caller = await authenticateCaller(manager, context)
  const client = await manager.registry.clients.get(id)
  const isOwn = client?.owner === caller.name || caller.roles.includes(ADMIN_ROLE)
  if (client === null || client.tenant !== caller.tenant || !isOwn) {
    throw new OAuthRefusal('invalid_client_id', 'there is no such client', { status: 404 })
  }
  return { client, caller }
}

/** An account, by Basic. Throws OAuthRefusal. */
async function authenticateCaller(manager: KeyManager, context: Context): Promise<Subject> {
  const address = admitAddress(manager, context)
  const shown = basicCredentials(context.req.header('authorization') ?? null)
  if (shown === null) throw invalidClient()
  const { tenant } = await accountNamed(shown.name, () => manager.registry.tenants.list())
  const subject = await logIn(manager, tenant, { name: shown.name, password: shown.secret, address })
  if (subject === null) throw invalidClient()
  if (subject.roles.some(role => REGISTERING_ROLES.includes(role))) return subject
  throw new OAuthRefusal('access_denied', 'the account may not register clients', { status: 403 })
}

/** `secret`: null where it is not told: it is kept as a hash. */
function answer(client: Client, secret: string | null): Response {
  const { consumerKey, name, owner, grants, redirectUris, tokenType } = client
  const grantTypes = grants.join(' ')
  const told = {
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
  return Response.json(told, { headers: NO_STORE })
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name] ?? ''
  if (typeof value !== 'string' || value.length > NAME_CHARS_MAX) throw wrong(`${name} must be a short text`)
  return value.trim()
}

function flagOf(fields: Fields, name: string): boolean | undefined {
  const value = fields[name]
  if (value === undefined || typeof value === 'boolean') return value
  throw wrong(`${name} must be true or false`)
}

/** Those that are known: the answer says which (RFC 7591 3.2.1). */
function grantsOf({ grantType }: Fields): readonly string[] | undefined {
  if (grantType === undefined) return undefined
  const named = typeof grantType === 'string' ? grantType.split(/[ ,]+/) : []
  const known = KNOWN_GRANTS.filter(grant => named.includes(grant))
  if (known.length === 0) throw wrong('grantType names no grant that is known')
  return known
}

function redirectUrisOf({ callbackUrl }: Fields): readonly string[] | undefined {
  if (callbackUrl === undefined || callbackUrl === null) return undefined
  if (typeof callbackUrl !== 'string') throw wrong('callbackUrl must be a text')
  const uris = callbackUrl.split(/[\s,]+/).filter(uri => uri !== '')
  if (uris.length <= REDIRECT_URIS_MAX && uris.every(mayReceiveCodes)) return uris
  throw new OAuthRefusal('invalid_redirect_uri', 'callbackUrl must be https, http to this machine, or a private scheme')
}

function tokenTypeOf({ tokenType }: Fields): 'JWT' | 'OPAQUE' | undefined {
  if (tokenType === undefined) return undefined
  if (tokenType === 'JWT' || tokenType === 'DEFAULT') return 'JWT'
  if (tokenType === 'OPAQUE') return 'OPAQUE'
  throw wrong('tokenType must be DEFAULT, JWT or OPAQUE')
}

function wrong(description: string): OAuthRefusal {
  return new OAuthRefusal('invalid_client_metadata', description)
}

async function telling<T>(made: Promise<T>): Promise<T> {
  try {
    return await made
  } catch (error) {
    if (error instanceof RegistryRefusal) throw wrong(`the registry has refused ${error.field || 'it'}`)
    throw error
  }
}
