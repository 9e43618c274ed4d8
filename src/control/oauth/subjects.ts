/** Subjects of tokens: users, applications, and users of other issuers. */
import type { Client, User } from '../registry/entities.ts'
import type { KeyManager } from './key-manager.ts'

/** Prefix of users from assertions: a foreign name never matches a local user. */
const FEDERATED = 'federated:'

export interface Subject {
  /** Without its tenant. */
  readonly name: string
  readonly tenant: string
  /** A token for the application itself; `name` is its owner. */
  readonly isApplication: boolean
  readonly roles: readonly string[]
  readonly claims: Readonly<Record<string, string>>
}

export function userSubject({ name, tenant, roles, claims }: User): Subject {
  return { name, tenant, isApplication: false, roles, claims }
}

/** The application, with the roles of its owner. */
export async function applicationSubject({ registry }: KeyManager, { owner, tenant }: Client): Promise<Subject> {
  const user = await registry.users.find(owner, tenant)
  const roles = user === null || user.isLocked ? [] : user.roles
  return { name: owner, tenant, isApplication: true, roles, claims: {} }
}

/** A user of an assertion, without local roles. */
export function federatedSubject(issuer: string, name: string, tenant: string): Subject {
  return { name: `${FEDERATED}${issuer}|${name}`, tenant, isApplication: false, roles: [], claims: {} }
}

/** The subject of an issued token with its current roles; null where the user is removed or locked. */
export async function currentSubject(
  manager: KeyManager,
  client: Client,
  issued: { readonly user: string; readonly tenant: string; readonly isApplication: boolean },
): Promise<Subject | null> {
  if (issued.isApplication) return applicationSubject(manager, client)
  if (issued.user.startsWith(FEDERATED)) {
    return { name: issued.user, tenant: issued.tenant, isApplication: false, roles: [], claims: {} }
  }
  const user = await manager.registry.users.find(issued.user, issued.tenant)
  return user === null || user.isLocked ? null : userSubject(user)
}

/**
 * `sub`: `name@tenant` for a user, because names repeat across tenants; the client id for an application (RFC 9068
 * 2.2).
 */
export function subjectClaim(
  { name, tenant, isApplication }: Pick<Subject, 'name' | 'tenant' | 'isApplication'>,
  { consumerKey }: Client,
): string {
  return isApplication ? consumerKey : `${name}@${tenant}`
}
