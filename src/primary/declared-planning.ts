/** From the application files of a home to the facts that reactors are told of, beside those of a database. */
import { createHash } from 'node:crypto'
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
    const id = idOf('application', tenant, account, name)
    return {
      application: { id, name, owner: account, tenant, tier, attributes },
      keys: keys.map(({ type: keyType, consumerKey, issuer }) => {
        return { issuer: issuer || own, consumerKey, applicationId: id, keyType }
      }),
      subscriptions: subscriptions.map(({ api, tier: plan, status }) => {
        return { id: idOf('subscription', id, api), applicationId: id, api, tier: plan, status }
      }),
    }
  })
  return {
    applications: each.map(({ application }) => application),
    keys: each.flatMap(({ keys }) => keys),
    subscriptions: each.flatMap(({ subscriptions }) => subscriptions),
  }
}

/** A UUID (RFC 9562 5.8) that is the same after a restart and on every node with the same files. */
function idOf(...words: readonly string[]): string {
  const bytes = createHash('sha256')
    .update(`file\n${words.join('\n')}`)
    .digest()
    .subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
