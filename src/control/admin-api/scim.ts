/**
 * SCIM 2.0 (RFC 7643, RFC 7644) for users and roles: names, passwords, roles, active state, and claims as an extension.
 */
import type { Context } from 'hono'
import type { User } from '../registry/entities.ts'
import type { AdminAuthenticator } from './authentication.ts'
import {
  boolean,
  object,
  list,
  nameText,
  optional,
  readBody,
  readQuery,
  text,
  textMap,
  integer,
} from './request-fields.ts'
import { invalidProblem, Problem } from './problem.ts'
import { createdResponse, RestApp, pathParameter } from './rest-app.ts'
import type { AdminServices } from './admin-services.ts'
import { UserService } from './user-service.ts'

export const SCIM = '/scim2'

const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const PASSWORD = text(256)
const USER = {
  schemas: optional(list(text(200), 10), []),
  userName: nameText(255),
  password: optional(PASSWORD, ''),
  active: optional(boolean(), true),
  roles: optional(list(object({ value: nameText(255) }), 100), []),
  claims: optional(textMap(50, 1024), {}),
}
const READ_ONLY = ['id', 'meta']
const FILTER = /^userName eq "((?:[^"\\]|\\["\\])+)"$/i

export function scimApp(services: () => AdminServices, authenticator: AdminAuthenticator): RestApp['app'] {
  const resources = new RestApp(SCIM, authenticator, services)
  const users = new UserService(services)
  resources.app.use('*', async (_, next) => {
    if (!services().hasScim) throw new Problem(404, 'SCIM is off: SCIMEnabled of [user_store.properties] is false')
    await next()
  })
  const { route } = resources
  route('get', '/Users', ['internal_user_mgt_list'], async (context, caller) => {
    const paging = { startIndex: optional(integer(1, 1_000_000_000), 1), count: optional(integer(0, 1000), 100) }
    const { startIndex, count, filter } = readQuery(context.req.raw, { ...paging, filter: optional(text(400), '') })
    if (filter !== '') {
      const name = FILTER.exec(filter)?.[1]?.replaceAll(/\\(["\\])/g, '$1')
      if (name === undefined) throw invalidProblem('filter', 'expected userName eq "…"')
      const user = await services().registry.users.find(name, caller.tenant)
      return context.json(userListRepresentation(user === null ? [] : [user], user === null ? 0 : 1, 1))
    }
    const found = await users.list(caller, { offset: startIndex - 1, limit: count })
    return context.json(userListRepresentation(found.users, found.total, startIndex))
  })
  route('post', '/Users', ['internal_user_mgt_create'], async (context, caller) => {
    const { userName, password, active, roles, claims } = await readBody(context.req.raw, USER, READ_ONLY)
    if (password === '') throw invalidProblem('password', 'is missing')
    const account = { name: userName, roles: roles.map(({ value }) => value), claims, isLocked: !active }
    const user = await users.create(account, password, caller)
    return createdResponse(context, userRepresentation(user), user.id)
  })
  route('get', '/Users/:id', ['internal_user_mgt_view', 'internal_user_mgt_list'], async (context, caller) => {
    return context.json(userRepresentation(await users.get(pathParameter(context, 'id'), caller)))
  })
  route('put', '/Users/:id', ['internal_user_mgt_update'], async (context, caller) => {
    const user = await users.get(pathParameter(context, 'id'), caller)
    const { userName, password, active, roles, claims } = await readBody(context.req.raw, USER, READ_ONLY)
    if (userName !== user.name) throw invalidProblem('userName', 'cannot be changed')
    // A refused request changes nothing, and the password is the last change.
    if (password !== '') services().registry.users.requirePassword(password)
    const change = { roles: roles.map(({ value }) => value), claims, isLocked: !active }
    const updated = await users.update(user, change, caller)
    if (password !== '') await users.setPassword(user, password, caller)
    return context.json(userRepresentation(updated))
  })
  route('delete', '/Users/:id', ['internal_user_mgt_delete'], async (context, caller) => {
    await users.remove(await users.get(pathParameter(context, 'id'), caller), caller)
    return context.body(null, 204)
  })
  addRoles(resources, services)
  return resources.app
}

const ROLE = { schemas: optional(list(text(200), 10), []), displayName: nameText(255) }

/** Roles are identified by their name. */
function addRoles(resources: RestApp, services: () => AdminServices): void {
  const { route } = resources
  route('get', '/Roles', ['internal_user_mgt_list'], async (context: Context, { tenant }) => {
    const roles = await services().registry.users.roles(tenant)
    const Resources = roles.map(name => ({ id: name, displayName: name }))
    return context.json({ schemas: [LIST_SCHEMA], totalResults: roles.length, startIndex: 1, Resources })
  })
  route('post', '/Roles', ['internal_user_mgt_create'], async (context, { tenant, user }) => {
    const { displayName } = await readBody(context.req.raw, ROLE)
    await services().registry.users.createRole(tenant, displayName)
    services().report('info', 'role created', { USER: user, TENANT: tenant, ROLE: displayName })
    return createdResponse(context, { id: displayName, displayName }, displayName)
  })
  route('delete', '/Roles/:id', ['internal_user_mgt_delete'], async (context, { tenant, user }) => {
    const role = pathParameter(context, 'id')
    await services().registry.users.removeRole(tenant, role)
    services().report('info', 'role removed', { USER: user, TENANT: tenant, ROLE: role })
    return context.body(null, 204)
  })
}

function userRepresentation({ id, name, roles, claims, isLocked }: User) {
  const meta = { resourceType: 'User', location: `${SCIM}/Users/${id}` }
  return {
    schemas: [USER_SCHEMA],
    id,
    userName: name,
    active: !isLocked,
    roles: roles.map(value => ({ value })),
    claims,
    meta,
  }
}

function userListRepresentation(users: readonly User[], totalResults: number, startIndex: number) {
  const Resources = users.map(userRepresentation)
  return { schemas: [LIST_SCHEMA], totalResults, startIndex, itemsPerPage: users.length, Resources }
}
