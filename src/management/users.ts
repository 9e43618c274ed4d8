/** Users and their roles: what REST and command line both do with them. For administrators, each in their tenant. */
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import type { User } from '../registry/entities.ts'
import type { Page } from '../registry/registry.ts'
import type { Actor } from './applications.ts'
import { missing, Problem } from './problem.ts'
import type { ManagementRoom } from './room.ts'

/** Throws Problem, and what the registry throws. */
export class Users {
  readonly #room: () => ManagementRoom

  constructor(room: () => ManagementRoom) {
    this.#room = room
  }

  list({ tenant }: Actor, page: Page) {
    return this.#room().registry.users.list(tenant, page)
  }

  async get(id: string, { tenant }: Actor): Promise<User> {
    const user = await this.#room().registry.users.get(id)
    if (user === null || user.tenant !== tenant) throw missing('user')
    return user
  }

  async named(name: string, { tenant }: Actor): Promise<User> {
    const user = await this.#room().registry.users.find(name, tenant)
    if (user === null) throw missing('user')
    return user
  }

  async create(given: Pick<User, 'name' | 'roles' | 'claims'>, password: string, actor: Actor): Promise<User> {
    const user = await this.#room().registry.users.create({ ...given, tenant: actor.tenant }, password)
    this.#told('user created', actor, user)
    return user
  }

  async update(user: User, change: Partial<Pick<User, 'roles' | 'claims' | 'isLocked'>>, actor: Actor): Promise<User> {
    const losesPower = change.isLocked === true || change.roles?.includes(ADMIN_ROLE) === false
    if (losesPower && isSelf(user, actor)) throw new Problem(409, 'you would lock yourself out')
    const updated = await this.#room().registry.users.update(user.id, change)
    this.#told('user changed', actor, user)
    return updated
  }

  async setPassword(user: User, password: string, actor: Actor): Promise<void> {
    await this.#room().registry.users.setPassword(user.id, password)
    this.#told('password set', actor, user)
  }

  async remove(user: User, actor: Actor): Promise<void> {
    if (isSelf(user, actor)) throw new Problem(409, 'you would remove yourself')
    await this.#room().registry.users.remove(user.id)
    this.#told('user removed', actor, user)
  }

  #told(event: string, { user, tenant }: Actor, { name }: User): void {
    this.#room().report('info', event, { USER: user, TENANT: tenant, SUBJECT: name })
  }
}

function isSelf({ name, tenant }: User, actor: Actor): boolean {
  return name === actor.user && tenant === actor.tenant
}
