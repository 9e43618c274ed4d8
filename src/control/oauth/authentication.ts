/**
 * Authenticates clients (RFC 6749 2.3) and users. A client uses Basic or the body, never both; a public client sends
 * its id alone.
 */
import { stripTenant } from '../../auth/account-names.ts'
import { parseBasicCredentials } from '../../auth/basic-credentials.ts'
import { networkOf } from '../../runtime/ip-address.ts'
import type { Client } from '../registry/entities.ts'
import { decodePart, type Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { invalidClient, OAuthError, tooManyRequests } from './oauth-error.ts'
import { type Subject, userSubject } from './subjects.ts'

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i
const CREDENTIAL_CHARS_MAX = 1024

interface BasicCredentials {
  readonly name: string
  readonly secret: string
}

interface UserCredentials {
  /** With or without its tenant. */
  readonly name: string
  readonly password: string
  /** Address of the client, for lockout and log. */
  readonly address: string
}

/** Null without an Authorization header. Throws OAuthError for a header that is not Basic or is malformed. */
export function basicCredentials(authorization: string | null): BasicCredentials | null {
  if (authorization === null) return null
  const [name, secret] = parseBasicCredentials(BASIC.exec(authorization)?.[1] ?? '') ?? []
  if (name === undefined || secret === undefined) throw invalidClient()
  return { name, secret }
}

/** The bearer token of a request (RFC 6750 2.1); '' without one. */
export function bearerToken(request: Request): string {
  return BEARER.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
}

/** Throws OAuthError: 401 for wrong credentials, 429 while the client is locked out for its address. */
export async function authenticateClient(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<Client> {
  const credentials = clientCredentials(request, form)
  const { limits } = manager.settings
  const key = `${credentials.name}\n${networkOf(address)}`
  manager.lockout.check(key, limits.failures)
  const client = await findClient(manager, credentials)
  if (client === null) {
    const isLocked = manager.lockout.failed(key, limits.failures, limits.lockoutMs)
    if (isLocked) {
      const fields = { CLIENT_ADDRESS: address, CONSUMER_KEY: credentials.name }
      manager.report('warn', 'client locked out after wrong credentials', fields)
    }
    throw invalidClient()
  }
  manager.lockout.succeeded(key)
  return client
}

/** Authenticates the client and counts the request against its rate limit. Throws OAuthError. */
export async function authenticateAndCountClient(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<Client> {
  const client = await authenticateClient(manager, request, form, address)
  manager.rateLimiter.count(`client ${client.consumerKey}`, manager.settings.limits.perClient)
  return client
}

function clientCredentials(request: Request, form: Form): BasicCredentials {
  const basic = basicCredentials(request.headers.get('authorization'))
  const name = form.text('client_id')
  const secret = form.text('client_secret')
  if (basic === null) {
    if (name === '') throw invalidClient()
    return { name, secret }
  }
  if (secret !== '') throw new OAuthError('invalid_request', 'the client uses two authentication methods')
  const decoded = { name: decodePart(basic.name), secret: decodePart(basic.secret) }
  if (name !== '' && name !== decoded.name) throw new OAuthError('invalid_request', 'client_id names another client')
  return decoded
}

async function findClient({ registry }: KeyManager, { name, secret }: BasicCredentials): Promise<Client | null> {
  if (name.length > CREDENTIAL_CHARS_MAX || secret.length > CREDENTIAL_CHARS_MAX) return null
  if (secret !== '') return registry.clients.authenticate(name, secret)
  const client = await registry.clients.get(name)
  return client?.isPublic ? client : null
}

/** A user of the tenant; null for wrong credentials. Throws OAuthError (429) for a locked name. */
export async function authenticateUser(
  manager: KeyManager,
  tenant: string,
  { name: given, password, address }: UserCredentials,
): Promise<Subject | null> {
  const name = stripTenant(given, tenant)
  if (name.length > CREDENTIAL_CHARS_MAX || password.length > CREDENTIAL_CHARS_MAX) return null
  const user = await manager.registry.users.authenticate(name, tenant, password, address)
  if (user === 'locked') {
    manager.report('warn', 'login refused: user name locked', { CLIENT_ADDRESS: address, USER: name, TENANT: tenant })
    throw tooManyRequests('too many failures', manager.settings.limits.lockoutMs)
  }
  return user === null ? null : userSubject(user)
}
