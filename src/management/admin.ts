/** What administrators do beside users: key managers, applications of everybody, tenants, single tokens. */
import { SUPER_TENANT } from '../config/account-names.ts'
import { Applications } from './applications.ts'
import type { Callers } from './callers.ts'
import { nameText, optional, PAGE, readBody, readQuery, text, whole } from './fields.ts'
import { keyManagerIdOf, paged } from './names.ts'
import { Problem } from './problem.ts'
import { created, ResourceApp, segment } from './resource-app.ts'
import type { ManagementRoom } from './room.ts'
import { applicationShape } from './shapes.ts'

export const ADMIN = '/api/am/admin/v4'

const SCOPES = ['apim:admin']
/** In seconds, as long as a token may last: one whose end nobody names is not to come back. */
const REVOCATION_S_MAX = 10 * 366 * 86_400

export function adminApp(room: () => ManagementRoom, callers: Callers): ResourceApp['app'] {
  const resources = new ResourceApp(ADMIN, callers, room)
  const applications = new Applications(room)
  const on = resources.on.bind(resources)
  on('get', '/key-managers', SCOPES, async context => {
    const { tokens } = room()
    const list = [{ id: keyManagerIdOf(tokens.issuer), name: 'Resident Key Manager', ...keyManagerShape(room()) }]
    return context.json({ count: 1, list })
  })
  on('get', '/applications', SCOPES, async (context, caller) => {
    const page = readQuery(context.req.raw, PAGE)
    const { total, applications: found } = await applications.list(caller, page)
    const rows = await Promise.all(
      found.map(async one => {
        const of = { applicationId: one.id }
        return applicationShape(one, (await room().registry.subscriptions.list(of, { offset: 0, limit: 1 })).total)
      }),
    )
    return context.json(paged(`${ADMIN}/applications`, rows, page, total))
  })
  on('delete', '/applications/:id', SCOPES, async (context, caller) => {
    await applications.remove(await applications.get(segment(context, 'id'), caller), caller)
    return context.body(null, 200)
  })
  on('get', '/tenants', SCOPES, async (context, { tenant }) => {
    const all = tenant === SUPER_TENANT ? await room().registry.tenants.list() : [tenant]
    return context.json({ count: all.length, list: all.map(domain => ({ domain })) })
  })
  on('post', '/tenants', SCOPES, async (context, { tenant, user }) => {
    if (tenant !== SUPER_TENANT) throw new Problem(403, 'tenants are made by the super tenant')
    const { domain } = await readBody(context.req.raw, { domain: nameText(253) })
    await room().registry.tenants.create(domain)
    room().report('info', 'tenant created', { USER: user, SUBJECT: domain })
    return created(context, { domain }, domain)
  })
  on('post', '/tokens/revoke', SCOPES, async (context, { tenant, user }) => {
    // Tokens of other issuers are of no tenant.
    if (tenant !== SUPER_TENANT) throw new Problem(403, 'single tokens are revoked by the super tenant')
    const nowS = Math.floor(room().now() / 1000)
    const expiryTime = optional(whole(nowS, nowS + REVOCATION_S_MAX), nowS + REVOCATION_S_MAX)
    const given = await readBody(context.req.raw, { jti: text(512), expiryTime })
    await room().registry.tokens.revokeFacts({ key: given.jti, expiresMs: given.expiryTime * 1000 }, '')
    room().report('info', 'token revoked', { USER: user, TOKEN_ID: given.jti })
    return context.body(null, 200)
  })
  return resources.app
}

function keyManagerShape({ tokens, origin }: ManagementRoom) {
  return {
    type: 'default',
    enabled: true,
    issuer: tokens.issuer,
    tokenEndpoint: `${origin}/oauth2/token`,
    revokeEndpoint: `${origin}/oauth2/revoke`,
    introspectionEndpoint: `${origin}/oauth2/introspect`,
    availableGrantTypes: tokens.grants,
    certificates: { type: 'JWKS', value: `${origin}/oauth2/jwks` },
  }
}
