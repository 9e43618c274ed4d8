/** Who asks: the client (RFC 6749 2.3), by Basic or in the body and never both; a public one by its id alone. */
import { readBasic } from '../identity/basic-credentials.ts'
import type { Client } from '../registry/entities.ts'
import { decodePart, type Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { invalidClient, OAuthRefusal } from './oauth-refusal.ts'

const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i
const CREDENTIAL_CHARS_MAX = 1024

interface Credentials {
  readonly name: string
  readonly secret: string
}

/** Null where nothing of the kind was sent. Throws OAuthRefusal. */
export function basicCredentials(authorization: string | null): Credentials | null {
  if (authorization === null) return null
  const [name, secret] = readBasic(BASIC.exec(authorization)?.[1] ?? '') ?? []
  if (name === undefined || secret === undefined) throw invalidClient()
  return { name, secret }
}

/** Throws OAuthRefusal. */
export async function authenticateClient(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<Client> {
  const shown = shownCredentials(request, form)
  const { limits } = manager.settings
  const place = `${shown.name}\n${address}`
  manager.lockout.check(place, limits.failures)
  const client = await matching(manager, shown)
  if (client === null) {
    const isLocked = manager.lockout.failed(place, limits.failures, limits.lockoutMs)
    if (isLocked) {
      const fields = { CLIENT_ADDRESS: address, CONSUMER_KEY: shown.name }
      manager.surroundings.log('warn', 'client locked out after wrong credentials', fields)
    }
    throw invalidClient()
  }
  manager.lockout.succeeded(place)
  return client
}

/** One that asks for itself, and so often at most. Throws OAuthRefusal. */
export async function admitClient(manager: KeyManager, request: Request, form: Form, address: string): Promise<Client> {
  const client = await authenticateClient(manager, request, form, address)
  manager.rate.count(`client ${client.consumerKey}`, manager.settings.limits.perClient)
  return client
}

function shownCredentials(request: Request, form: Form): Credentials {
  const basic = basicCredentials(request.headers.get('authorization'))
  const name = form.text('client_id')
  const secret = form.text('client_secret')
  if (basic !== null) {
    if (secret !== '') throw new OAuthRefusal('invalid_request', 'the client authenticates in two ways')
    const shown = { name: decodePart(basic.name), secret: decodePart(basic.secret) }
    if (name !== '' && name !== shown.name) throw new OAuthRefusal('invalid_request', 'client_id names another client')
    return shown
  }
  if (name === '') throw invalidClient()
  return { name, secret }
}

async function matching({ registry }: KeyManager, { name, secret }: Credentials): Promise<Client | null> {
  if (name.length > CREDENTIAL_CHARS_MAX || secret.length > CREDENTIAL_CHARS_MAX) return null
  if (secret !== '') return registry.clients.authenticate(name, secret)
  const client = await registry.clients.get(name)
  return client?.isPublic ? client : null
}
