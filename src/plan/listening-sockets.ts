/** Names of listening sockets, and tables of their descriptors by name, which a process hands over to its successor. */

/** Descriptors by name of the socket; several where each reactor has its own. */
export type SocketTable = Readonly<Record<string, readonly number[]>>

/** `kind`: of the listener, `health` or `management`. `port`: as it is configured, 0 for any. */
export function socketName(kind: string, host: string, port: number): string {
  return `${kind} ${host}:${port}`
}

export function mergeSockets(tables: readonly SocketTable[]): SocketTable {
  const merged: Record<string, number[]> = {}
  for (const table of tables) {
    for (const [name, fds] of Object.entries(table)) merged[name] = [...(merged[name] ?? []), ...fds]
  }
  return merged
}
