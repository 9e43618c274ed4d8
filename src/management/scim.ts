/**
 * Users over SCIM 2.0 (RFC 7643, RFC 7644), as far as they have something here: names, passwords, roles, whether they
 * are active, and claims of the gateway's own.
 */
import type { Context } from 'hono'
import type { User } from '../registry/entities.ts'
import type { Callers } from './callers.ts'
import { flag, group, list, nameText, optional, readBody, readQuery, text, texts, whole } from './fields.ts'
import { invalid } from './problem.ts'
import { created, ResourceApp, segment } from './resource-app.ts'
import type { ManagementRoom } from './room.ts'
import { Users } from './users.ts'

export const SCIM = '/scim2'

const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const PASSWORD = text(256)
const USER = {
  schemas: optional(list(text(200), 10), []),
  userName: nameText(255),
  password: optional(PASSWORD, ''),
  active: optional(flag(), true),
  roles: optional(list(group({ value: nameText(255) }), 100), []),
  claims: optional(texts(50, 1024), {}),
}
const ANSWERED = ['id', 'meta']
const FILTER = /^userName eq "((?:[^"\\]|\\["\\])+)"$/i

export function scimApp(room: () => ManagementRoom, callers: Callers): ResourceApp['app'] {
  const resources = new ResourceApp(SCIM, callers, room)
  const users = new Users(room)
  const on = resources.on.bind(resources)
  on('get', '/Users', ['internal_user_mgt_list'], async (context, caller) => {
    const paging = { startIndex: optional(whole(1, 1_000_000_000), 1), count: optional(whole(0, 1000), 100) }
    const { startIndex, count, filter } = readQuery(context.req.raw, { ...paging, filter: optional(text(400), '') })
    if (filter !== '') {
      const name = FILTER.exec(filter)?.[1]?.replaceAll(/\\(["\\])/g, '$1')
      if (name === undefined) throw invalid('filter', 'expected userName eq "…"')
      const user = await room().registry.users.find(name, caller.tenant)
      return context.json(listShape(user === null ? [] : [user], user === null ? 0 : 1, 1))
    }
    const found = await users.list(caller, { offset: startIndex - 1, limit: count })
    return context.json(listShape(found.users, found.total, startIndex))
  })
  on('post', '/Users', ['internal_user_mgt_create'], async (context, caller) => {
    const { userName, password, active, roles, claims } = await readBody(context.req.raw, USER, ANSWERED)
    if (password === '') throw invalid('password', 'is missing')
    const given = { name: userName, roles: roles.map(({ value }) => value), claims }
    const user = await users.create(given, password, caller)
    return created(context, shapeOf(active ? user : await users.update(user, { isLocked: true }, caller)), user.id)
  })
  on('get', '/Users/:id', ['internal_user_mgt_view', 'internal_user_mgt_list'], async (context, caller) => {
    return context.json(shapeOf(await users.get(segment(context, 'id'), caller)))
  })
  on('put', '/Users/:id', ['internal_user_mgt_update'], async (context, caller) => {
    const user = await users.get(segment(context, 'id'), caller)
    const { userName, password, active, roles, claims } = await readBody(context.req.raw, USER, ANSWERED)
    if (userName !== user.name) throw invalid('userName', 'stays as it was when it was created')
    const change = { roles: roles.map(({ value }) => value), claims, isLocked: !active }
    const updated = await users.update(user, change, caller)
    if (password !== '') await users.setPassword(user, password, caller)
    return context.json(shapeOf(updated))
  })
  on('delete', '/Users/:id', ['internal_user_mgt_delete'], async (context, caller) => {
    await users.remove(await users.get(segment(context, 'id'), caller), caller)
    return context.body(null, 204)
  })
  addRoles(resources, room)
  return resources.app
}

const ROLE = { schemas: optional(list(text(200), 10), []), displayName: nameText(255) }

/** A role is known by its name. */
function addRoles(resources: ResourceApp, room: () => ManagementRoom): void {
  const on = resources.on.bind(resources)
  on('get', '/Roles', ['internal_user_mgt_list'], async (context: Context, { tenant }) => {
    const roles = await room().registry.users.roles(tenant)
    const Resources = roles.map(name => ({ id: name, displayName: name }))
    return context.json({ schemas: [LIST_SCHEMA], totalResults: roles.length, startIndex: 1, Resources })
  })
  on('post', '/Roles', ['internal_user_mgt_create'], async (context, { tenant, user }) => {
    const { displayName } = await readBody(context.req.raw, ROLE)
    await room().registry.users.createRole(tenant, displayName)
    room().report('info', 'role created', { USER: user, TENANT: tenant, ROLE: displayName })
    return created(context, { id: displayName, displayName }, displayName)
  })
  on('delete', '/Roles/:id', ['internal_user_mgt_delete'], async (context, { tenant, user }) => {
    const role = segment(context, 'id')
    await room().registry.users.removeRole(tenant, role)
    room().report('info', 'role removed', { USER: user, TENANT: tenant, ROLE: role })
    return context.body(null, 204)
  })
}

function shapeOf({ id, name, roles, claims, isLocked }: User) {
  const meta = { resourceType: 'User', location: `${SCIM}/Users/${id}` }
  const given = roles.map(value => ({ value }))
  return { schemas: [USER_SCHEMA], id, userName: name, active: !isLocked, roles: given, claims, meta }
}

function listShape(users: readonly User[], totalResults: number, startIndex: number) {
  const Resources = users.map(shapeOf)
  return { schemas: [LIST_SCHEMA], totalResults, startIndex, itemsPerPage: users.length, Resources }
}
