/** Operations on users and roles, shared by REST and the command line. Administrators act within their tenant. */
import { ADMIN_ROLE } from '../registry/management-scopes.ts'
import type { User } from '../registry/entities.ts'
import type { Page } from '../registry/entities.ts'
import type { Actor } from './application-service.ts'
import { notFoundProblem, Problem } from './problem.ts'
import type { AdminServices } from './admin-services.ts'

/** Methods reject with Problem and registry errors. */
export class UserService {
  readonly #services: () => AdminServices

  constructor(services: () => AdminServices) {
    this.#services = services
  }

  list({ tenant }: Actor, page: Page) {
    return this.#services().registry.users.list(tenant, page)
  }

  async get(id: string, { tenant }: Actor): Promise<User> {
    const user = await this.#services().registry.users.get(id)
    if (user === null || user.tenant !== tenant) throw notFoundProblem('user')
    return user
  }

  async findByName(name: string, { tenant }: Actor): Promise<User> {
    const user = await this.#services().registry.users.find(name, tenant)
    if (user === null) throw notFoundProblem('user')
    return user
  }

  async create(
    given: Pick<User, 'name' | 'roles' | 'claims'> & Partial<Pick<User, 'isLocked'>>,
    password: string,
    actor: Actor,
  ): Promise<User> {
    const user = await this.#services().registry.users.create({ ...given, tenant: actor.tenant }, password)
    this.#report('user created', actor, user)
    return user
  }

  async update(user: User, change: Partial<Pick<User, 'roles' | 'claims' | 'isLocked'>>, actor: Actor): Promise<User> {
    const losesPower = change.isLocked === true || change.roles?.includes(ADMIN_ROLE) === false
    if (losesPower && isSelf(user, actor))
      throw new Problem(409, 'administrators cannot lock themselves or give up their own role')
    const updated = await this.#services().registry.users.update(user.id, change)
    this.#report('user changed', actor, user)
    return updated
  }

  async setPassword(user: User, password: string, actor: Actor): Promise<void> {
    const { registry, notices } = this.#services()
    await registry.users.setPassword(user.id, password)
    this.#report('password set', actor, user)
    if (!isSelf(user, actor)) await notices?.passwordReset(user)
  }

  async remove(user: User, actor: Actor): Promise<void> {
    if (isSelf(user, actor)) throw new Problem(409, 'administrators cannot remove themselves')
    await this.#services().registry.users.remove(user.id)
    this.#report('user removed', actor, user)
  }

  #report(event: string, { user, tenant }: Actor, { name }: User): void {
    this.#services().report('info', event, { USER: user, TENANT: tenant, SUBJECT: name })
  }
}

function isSelf({ name, tenant }: User, actor: Actor): boolean {
  return name === actor.user && tenant === actor.tenant
}
