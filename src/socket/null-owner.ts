/** The owner of a socket that has none: before it is attached, and once it is closed. */
import type { ConnectingOwner } from './byte-socket.ts'

export function ignore(): void {}

/** A new object each time, so that each use can tell its null owner from the others. */
export function nullOwner(): ConnectingOwner {
  return {
    onBytes: () => undefined,
    onEnd: ignore,
    onLost: ignore,
    onTlsFailed: ignore,
    onWriteFailed: ignore,
    onBlocked: ignore,
    onDrained: ignore,
    onError: ignore,
    onConnected: ignore,
  }
}
