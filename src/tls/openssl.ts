/** OpenSSL's own opinion of a key and its certificate, asked in the primary, where a refusal can still be reported. */
import { createSecureContext } from 'node:tls'
import type { TlsIdentity } from '../socket/tls.ts'

/** '' when it takes them; otherwise its reason, such as `ee key too small`. */
export function refusalOf({ cert, key }: TlsIdentity): string {
  try {
    createSecureContext({ cert, key })
    return ''
  } catch (error) {
    return (error as Error).message.replace(/^error:[0-9A-F]+:/, '')
  }
}
