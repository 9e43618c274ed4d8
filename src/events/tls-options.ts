/** Options of `node:tls` for connections of the control thread to brokers and traffic managers. */
import type { ConnectionOptions } from 'node:tls'
import type { TlsClientPlan } from '../socket/tls.ts'

/** Without a member that a caller sets. */
type TrustOptions = Pick<
  ConnectionOptions,
  'minVersion' | 'maxVersion' | 'ciphers' | 'ca' | 'cert' | 'key' | 'checkServerIdentity'
>

export function tlsOptions(trust: TlsClientPlan): TrustOptions {
  const { ca, identity, minVersion, maxVersion, ciphers, hostname } = trust
  return {
    minVersion,
    maxVersion,
    ...(ciphers === '' ? {} : { ciphers }),
    ...(ca === null ? {} : { ca: [...ca] }),
    ...(identity === null ? {} : { cert: identity.cert, key: identity.key }),
    // Names are not checked; the chain is.
    ...(hostname === 'none' ? { checkServerIdentity: () => undefined } : {}),
  }
}
