/** On whose behalf tokens are given. */
import type { Client, User } from '../registry/entities.ts'
import type { KeyManager } from './key-manager.ts'

/** What an issuer of assertions calls a user is no name of ours: it must never be taken for one. */
const FEDERATED = 'federated:'

export interface Subject {
  /** Without a tenant. */
  readonly name: string
  readonly tenant: string
  /** An application that asks for itself: `name` is its owner. */
  readonly isApplication: boolean
  readonly roles: readonly string[]
  readonly claims: Readonly<Record<string, string>>
}

export function userSubject({ name, tenant, roles, claims }: User): Subject {
  return { name, tenant, isApplication: false, roles, claims }
}

/** With the roles of its owner: an application may do what they may. */
export async function applicationSubject({ registry }: KeyManager, { owner, tenant }: Client): Promise<Subject> {
  const user = await registry.users.find(owner, tenant)
  const roles = user === null || user.isLocked ? [] : user.roles
  return { name: owner, tenant, isApplication: true, roles, claims: {} }
}

/** Of somebody whom a trusted issuer vouches for: without any role. */
export function federatedSubject(issuer: string, name: string, tenant: string): Subject {
  return { name: `${FEDERATED}${issuer}|${name}`, tenant, isApplication: false, roles: [], claims: {} }
}

/** As it is now; null where the user is gone or locked. */
export async function subjectAgain(
  manager: KeyManager,
  client: Client,
  given: { readonly user: string; readonly tenant: string; readonly isApplication: boolean },
): Promise<Subject | null> {
  if (given.isApplication) return applicationSubject(manager, client)
  if (given.user.startsWith(FEDERATED)) {
    return { name: given.user, tenant: given.tenant, isApplication: false, roles: [], claims: {} }
  }
  const user = await manager.registry.users.find(given.user, given.tenant)
  return user === null || user.isLocked ? null : userSubject(user)
}

/** `sub`: of a user with the tenant, because names repeat; of an application its client id (RFC 9068 2.2). */
export function subjectName({ name, tenant, isApplication }: Subject, { consumerKey }: Client): string {
  return isApplication ? consumerKey : `${name}@${tenant}`
}
