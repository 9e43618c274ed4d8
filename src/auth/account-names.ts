/** Account names as people and tokens write them: `name` or `name@tenant`. */

/** The tenant that always exists, as documented; a name without a tenant belongs to it. */
export const SUPER_TENANT = 'carbon.super'

export interface AccountName {
  readonly name: string
  readonly tenant: string
}

/** The text behind the last `@` is a tenant only if such a tenant exists, because names may hold an `@` themselves. */
export async function resolveAccountName(
  given: string,
  tenants: () => Promise<readonly string[]>,
): Promise<AccountName> {
  const at = given.lastIndexOf('@')
  const tenant = given.slice(at + 1)
  const isTenant = at > 0 && (tenant === SUPER_TENANT || (await tenants()).includes(tenant))
  return isTenant ? { name: given.slice(0, at), tenant } : { name: given, tenant: SUPER_TENANT }
}

/** Removes `@tenant` from the end of a name, if it is there. `tenant`: of the account; '' where there is none. */
export function stripTenant(name: string, tenant: string): string {
  return tenant !== '' && name.endsWith(`@${tenant}`) ? name.slice(0, -tenant.length - 1) : name
}
