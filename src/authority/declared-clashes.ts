/** What files of the home declare and the database has too: whoever is asked would not know which of them holds. */
import type { DeclaredApplications } from '../identity/declared-applications.ts'
import type { Registry } from '../registry/registry.ts'

/** Rejects with the first clash, in a sentence. `issuer`: of the tokens whose clients are in the registry. */
export async function refuseClashes(
  { applications, keys }: DeclaredApplications,
  { applications: kept, clients }: Pick<Registry, 'applications' | 'clients'>,
  issuer: string,
): Promise<void> {
  for (const { issuer: whose, consumerKey } of keys) {
    if (whose !== issuer || (await clients.get(consumerKey))?.applicationId == null) continue
    throw new Error(`the key ${consumerKey}, which a file in applications/ declares, is in the database too`)
  }
  for (const { tenant, owner, name } of applications) {
    const found = await kept.list({ tenant, owner, name }, { offset: 0, limit: 1000 })
    if (!found.applications.some(one => one.name === name)) continue
    throw new Error(
      `the application ${name} of ${owner}, which a file in applications/ declares, is in the database too`,
    )
  }
}
