/** TLS towards a database server, as Node takes it. */
import type { ConnectionOptions } from 'node:tls'
import type { ServerTerms } from './database-terms.ts'

/** Undefined where the connection is in the clear. */
export function tlsOptions({ host, tls }: ServerTerms): ConnectionOptions | undefined {
  if (tls === null) return undefined
  const { isVerified, isHostVerified, authorities, certificate, key } = tls
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: isVerified,
    // Names in SNI are no addresses (RFC 6066 3).
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(isHostVerified ? {} : { checkServerIdentity: () => undefined }),
    ...(authorities === '' ? {} : { ca: authorities }),
    ...(certificate === '' ? {} : { cert: certificate, key }),
  }
}
