/** The owner of a socket that has none: before it is attached, and once it is closed. */
import type { ConnectingOwner } from './byte-socket.ts'

export function ignore(): void {}

/** A new one, so that one place's nobody is not another's. */
export function nobody(): ConnectingOwner {
  return {
    onBytes: () => undefined,
    onEnd: ignore,
    onLost: ignore,
    onHandshakeFailed: ignore,
    onWriteFailed: ignore,
    onDrained: ignore,
    onBug: ignore,
    onConnected: ignore,
  }
}
