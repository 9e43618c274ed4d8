/** REST API of administrators: key managers, all applications, tenants, throttling policies, revocation of tokens. */
import { SUPER_TENANT } from '../../auth/account-names.ts'
import { ApplicationService } from './application-service.ts'
import { ApprovalService } from './approval-service.ts'
import { type AdminAuthenticator, requireSuperTenant } from './authentication.ts'
import { nameText, optional, PAGE, readBody, readQuery, text, integer } from './request-fields.ts'
import {
  applicationRepresentation,
  environmentRepresentation,
  keyManagerRepresentation,
  listRepresentation,
} from './representations.ts'
import { createdResponse, RestApp, pathParameter } from './rest-app.ts'
import { addThrottling } from './throttling.ts'
import { addWorkflows } from './workflows.ts'
import type { AdminServices } from './admin-services.ts'

export const ADMIN = '/api/am/admin/v4'

const SCOPES = ['apim:admin']
/** Default life of a revocation in seconds: the maximum life of an API key. */
const REVOCATION_S_MAX = 10 * 366 * 86_400

export function adminApp(services: () => AdminServices, authenticator: AdminAuthenticator): RestApp['app'] {
  const resources = new RestApp(ADMIN, authenticator, services)
  const applications = new ApplicationService(services)
  const approvals = new ApprovalService(services)
  const { route } = resources
  route('get', '/key-managers', SCOPES, async context => {
    return context.json({ count: 1, list: [keyManagerOfAdministrators(services())] })
  })
  route('get', '/environments', SCOPES, async context => {
    const list = services().portal.environments.map(environmentRepresentation)
    return context.json({ count: list.length, list })
  })
  route('get', '/applications', SCOPES, async (context, caller) => {
    const page = readQuery(context.req.raw, PAGE)
    const { total, applications: found } = await applications.list(caller, page)
    const statuses = await approvals.statuses(found)
    const rows = await Promise.all(
      found.map(async one => {
        const of = { applicationId: one.id }
        const { total: subscriptions } = await services().registry.subscriptions.list(of, { offset: 0, limit: 1 })
        return applicationRepresentation(one, subscriptions, statuses.get(one.id))
      }),
    )
    return context.json(listRepresentation(`${ADMIN}/applications`, rows, page, total))
  })
  route('delete', '/applications/:id', SCOPES, async (context, caller) => {
    await applications.remove(await applications.get(pathParameter(context, 'id'), caller), caller)
    return context.body(null, 200)
  })
  route('get', '/tenants', SCOPES, async (context, { tenant }) => {
    const all = tenant === SUPER_TENANT ? await services().registry.tenants.list() : [tenant]
    return context.json({ count: all.length, list: all.map(domain => ({ domain })) })
  })
  route('post', '/tenants', SCOPES, async (context, caller) => {
    requireSuperTenant(caller, 'create tenants')
    const { domain } = await readBody(context.req.raw, { domain: nameText(253) })
    await services().registry.tenants.create(domain)
    services().report('info', 'tenant created', { USER: caller.user, SUBJECT: domain })
    return createdResponse(context, { domain }, domain)
  })
  route('post', '/tokens/revoke', SCOPES, async (context, caller) => {
    // Tokens of other issuers belong to no tenant.
    requireSuperTenant(caller, 'revoke single tokens')
    const nowS = Math.floor(services().nowMs() / 1000)
    const expiryTime = optional(integer(nowS, nowS + REVOCATION_S_MAX), nowS + REVOCATION_S_MAX)
    const body = await readBody(context.req.raw, { jti: text(512), expiryTime })
    await services().registry.tokens.addRevocation({ key: body.jti, expiresMs: body.expiryTime * 1000 }, '')
    services().report('info', 'token revoked', { USER: caller.user, TOKEN_ID: body.jti })
    return context.body(null, 200)
  })
  addThrottling(resources, services)
  addWorkflows(resources, services)
  return resources.app
}

/** With its own endpoints, not the addresses that the developer portal shows. */
function keyManagerOfAdministrators(services: AdminServices) {
  const { origin } = services
  return {
    ...keyManagerRepresentation(services),
    tokenEndpoint: `${origin}/oauth2/token`,
    revokeEndpoint: `${origin}/oauth2/revoke`,
    introspectionEndpoint: `${origin}/oauth2/introspect`,
    certificates: { type: 'JWKS', value: `${origin}/oauth2/jwks` },
  }
}
