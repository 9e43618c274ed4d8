/** Names of accounts, as people and tokens write them: `name`, or `name@tenant`. */

/** The tenant that is there without being made, as documented; who names none means it. */
export const SUPER_TENANT = 'carbon.super'

export interface AccountName {
  readonly name: string
  readonly tenant: string
}

/** Names may hold an @ themselves: what follows the last one is a tenant where there is such a tenant. */
export async function accountNamed(given: string, tenants: () => Promise<readonly string[]>): Promise<AccountName> {
  const at = given.lastIndexOf('@')
  const tenant = given.slice(at + 1)
  const isTenant = at > 0 && (tenant === SUPER_TENANT || (await tenants()).includes(tenant))
  return isTenant ? { name: given.slice(0, at), tenant } : { name: given, tenant: SUPER_TENANT }
}

/** `tenant`: of the account, whether or not the name says it; '' where there is none. */
export function withoutTenant(name: string, tenant: string): string {
  return tenant !== '' && name.endsWith(`@${tenant}`) ? name.slice(0, -tenant.length - 1) : name
}
