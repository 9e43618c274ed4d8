/** `/oauth2/introspect` (RFC 7662): asked by gateways and resource servers, who have to say who they are. */
import { SUPER_TENANT } from '../config/account-names.ts'
import { METRIC } from '../observe/metrics.ts'
import type { Client, IssuedToken } from '../registry/entities.ts'
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import { authenticateClient, basicCredentials } from './client-authentication.ts'
import { decodePart, type Form } from './form.ts'
import type { KeyManager } from './key-manager.ts'
import { invalidClient, OAuthRefusal } from './oauth-refusal.ts'
import { logIn } from './log-in.ts'
import { digestOf } from './token-memory.ts'
import { subjectName } from './subjects.ts'

const INACTIVE = { active: false }

type Answer = Readonly<Record<string, unknown>>

/** Who asks: a client, or by the account of an administrator a gateway, for which there is no client. */
type Asker = Client | 'account'

/** Throws OAuthRefusal, and what the registry throws. */
export async function introspect(manager: KeyManager, request: Request, form: Form, address: string): Promise<Answer> {
  const asker = await admitAsker(manager, request, form, address)
  const token = form.required('token')
  const name = digestOf(`${asker === 'account' ? '' : asker.consumerKey}\n${form.text('token_type_hint')}\n${token}`)
  const remembered = manager.memory.get(name)
  const isHit = remembered !== undefined && isStillGood(manager, remembered)
  manager.surroundings.metrics.add(isHit ? METRIC.introspectionHits : METRIC.introspectionMisses, 1)
  if (isHit) return remembered
  const { epoch } = manager.memory
  const answer = await findAnswer(manager, asker, token, form.text('token_type_hint'))
  const { introspectionMs } = manager.settings
  if (introspectionMs > 0) manager.memory.keep(name, answer, introspectionMs, epoch)
  return answer
}

function isStillGood({ surroundings }: KeyManager, answer: Answer): boolean {
  return answer.active === false || Number(answer.exp) * 1000 > surroundings.now()
}

/** A gateway asks for all of its clients: what is limited is how often an address may be wrong about who it is. */
async function admitAsker(manager: KeyManager, request: Request, form: Form, address: string): Promise<Asker> {
  const { perAddress } = manager.settings.limits
  const name = `refused ${address}`
  manager.rate.check(name, perAddress)
  try {
    return await authenticateAsker(manager, request, form, address)
  } catch (error) {
    if (error instanceof OAuthRefusal && error.status === 401) manager.rate.count(name, perAddress)
    throw error
  }
}

async function authenticateAsker(manager: KeyManager, request: Request, form: Form, address: string): Promise<Asker> {
  const shown = basicCredentials(request.headers.get('authorization'))
  if (shown !== null && form.text('client_id') === '' && !(await isClient(manager, shown.name))) {
    const subject = await logIn(manager, SUPER_TENANT, { name: shown.name, password: shown.secret, address })
    if (subject?.roles.includes(ADMIN_ROLE)) return 'account'
    throw invalidClient()
  }
  const client = await authenticateClient(manager, request, form, address)
  if (client.isPublic) throw new OAuthRefusal('unauthorized_client', 'a public client may not ask')
  return client
}

/** Ids of clients come form-encoded, names of accounts as they are. */
async function isClient({ registry }: KeyManager, name: string): Promise<boolean> {
  return /%(?![0-9A-Fa-f]{2})/.test(name) ? false : (await registry.clients.get(decodePart(name))) !== null
}

async function findAnswer(manager: KeyManager, asker: Asker, token: string, hint: string): Promise<Answer> {
  const known = await manager.registry.tokens.find(token)
  if (known === null || !isToBeTold(known.issued, asker, hint)) return INACTIVE
  const { issued } = known
  if (issued.state !== 'ACTIVE' || issued.expiresMs <= manager.surroundings.now()) return INACTIVE
  const client = await manager.registry.clients.get(issued.consumerKey)
  if (client === null) return INACTIVE
  const subject = { ...issued, name: issued.user, roles: [], claims: {} }
  const issuedS = Math.floor(issued.issuedMs / 1000)
  return {
    active: true,
    scope: issued.scopes.join(' '),
    client_id: issued.consumerKey,
    username: `${issued.user}@${issued.tenant}`,
    token_type: issued.kind === 'access' ? 'Bearer' : 'refresh_token',
    sub: subjectName(subject, client),
    aud: issued.consumerKey,
    iss: manager.settings.issuer,
    aut: issued.isApplication ? 'APPLICATION' : 'APPLICATION_USER',
    jti: issued.revocationKey,
    iat: issuedS,
    nbf: issuedS,
    exp: Math.floor(issued.expiresMs / 1000),
  }
}

/**
 * A refresh token is active for the client that has it, if it asks for that: whoever asks about what came as an access
 * token must never be told that it is good (RFC 7662 4).
 */
function isToBeTold({ kind, consumerKey, tenant }: IssuedToken, asker: Asker, hint: string): boolean {
  if (kind === 'code') return false
  if (kind === 'refresh') return hint === 'refresh_token' && asker !== 'account' && asker.consumerKey === consumerKey
  return asker === 'account' || asker.tenant === tenant
}
