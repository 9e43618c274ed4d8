/** Events at rest: recipients and texts are personal data, and texts may be passwords that are used once. */
import { createHash } from 'node:crypto'
import type { SenderId } from './delivery.ts'
import type { OutboxConnection } from './outbox-schema.ts'
import { senderKey } from './sender-rows.ts'

/** Such as `SecretBox`. */
export interface EventCipher {
  encrypt(text: string, context: string): string
  /** Undefined where another key has encrypted it. */
  decrypt(encrypted: string, context: string): string | undefined
  /** At most 64 characters. */
  digest(text: string): string
}

type Ciphered = Pick<OutboxConnection, 'cipher'>

export function sealedEvent({ cipher }: Ciphered, event: string, sender: SenderId): string {
  return cipher === null ? event : cipher.encrypt(event, contextOf(sender))
}

/** '' where another key has encrypted it. */
export function openedEvent({ cipher }: Ciphered, stored: string, sender: SenderId): string {
  return cipher === null ? stored : (cipher.decrypt(stored, contextOf(sender)) ?? '')
}

export function eventDigest({ cipher }: Ciphered, text: string): string {
  return cipher === null ? createHash('sha256').update(text).digest('hex') : cipher.digest(text)
}

/** An event decrypts for its own sender only. */
function contextOf(sender: SenderId): string {
  return `event for ${senderKey(sender)}`
}
