/** Servers that the senders trust. */
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'

/**
 * The authorities of Node and those of `ca` (PEM); undefined, for Node's own store, where `ca` is empty. One context
 * for all connections, because each reads 150 certificates, which takes 100 ms.
 */
export function trustOf(ca: readonly string[]): SecureContext | undefined {
  return ca.length === 0 ? undefined : createSecureContext({ ca: [...rootCertificates, ...ca] })
}
