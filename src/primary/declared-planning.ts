/** From the application files of a home to the facts that reactors are told of, beside those of a database. */
import { namedUuid } from '../structure/named-uuid.ts'
import type { DeclaredApplication } from '../config/application-files.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { DeclaredApplications } from '../identity/declared-applications.ts'

export function declaredFacts(
  files: readonly DeclaredApplication[],
  configuration: Configuration,
): DeclaredApplications {
  const admin = configuration.super_admin.username
  const own = configuration.oauth['oidc.id_token.issuer']
  const each = files.map(({ name, owner, tenant, tier, attributes, keys, subscriptions }) => {
    const account = owner || admin
    const id = namedUuid('file', 'application', tenant, account, name)
    return {
      application: { id, name, owner: account, tenant, tier, attributes },
      keys: keys.map(({ type: keyType, consumerKey, issuer }) => {
        return { issuer: issuer || own, consumerKey, applicationId: id, keyType }
      }),
      subscriptions: subscriptions.map(({ api, tier: plan, status }) => {
        return { id: namedUuid('file', 'subscription', id, api), applicationId: id, api, tier: plan, status }
      }),
    }
  })
  return {
    applications: each.map(({ application }) => application),
    keys: each.flatMap(({ keys }) => keys),
    subscriptions: each.flatMap(({ subscriptions }) => subscriptions),
  }
}
