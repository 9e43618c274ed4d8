/**
 * `upgrade`, in the process that is replaced. It starts the new process and hands the listening sockets and the data
 * folder over. Where the new process fails, the old one goes on (D177).
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Log } from '../observe/log.ts'
import { mergeSockets, type SocketTable, socketName } from '../plan/listening-sockets.ts'
import { managementAddress } from '../plan/management-plan.ts'
import { healthAddress } from '../plan/ports.ts'
import { CommandRefused } from './control-socket.ts'
import type { ControlThread } from './control-thread.ts'
import { HandoverFailed, Successor, type SuccessorProgram } from './handover.ts'
import type { ReactorPool } from './reactor-pool.ts'

interface UpgradedNode {
  readonly reactors: ReactorPool
  /** Null on a node without a control thread. */
  readonly control: ControlThread | null
  readonly configuration: Configuration
  readonly healthFd: number
  /** Descriptors that the node has inherited itself. */
  readonly inherited: number
  readonly log: Log
  /** Stops what changes the node, because the other process is about to begin. */
  readonly quiesce: () => void
  /** Releases health port, control socket and data folder. */
  readonly release: () => Promise<void>
  /** Called when the other process serves. */
  readonly replaced: () => void
}

/** Pause before the control socket closes, so that its last response leaves. */
const ANSWER_MS = 50

/**
 * Starts another process, which takes over. Resolves with its id once it accepts connections. Rejects with
 * CommandRefused: then the node goes on as before.
 */
export async function replaceNode(program: SuccessorProgram, node: UpgradedNode): Promise<{ readonly pid: number }> {
  const { reactors, control, log } = node
  let successor: Successor | null = null
  let isListening = true
  try {
    const sockets = await socketsOf(node)
    reactors.sharesSockets = true
    successor = new Successor(program, sockets, node.inherited)
    await successor.until('loaded')
    node.quiesce()
    isListening = control === null
    await control?.closeListener()
    successor.tell('begin')
    await successor.until('serving')
  } catch (error) {
    successor?.kill()
    reactors.sharesSockets = false
    if (!(error instanceof HandoverFailed)) log.error({ CAUSE_OF_ERROR: String(error) }, 'upgrade failed')
    // A replacement of the thread listens again.
    if (!isListening) control?.kill()
    throw new CommandRefused(`not upgraded: ${(error as Error).message}; the running process goes on`)
  }
  const { pid } = successor
  log.info({ SUCCESSOR: pid }, 'another process takes over')
  setTimeout(() => void handOver(successor, node), ANSWER_MS)
  return { pid }
}

async function handOver(successor: Successor, { reactors, log, release, replaced }: UpgradedNode): Promise<void> {
  // Once the command has ended, each new connection is the other process's.
  await Promise.all(reactors.call({ kind: 'closeListeners' }))
  await release()
  successor.tell('take')
  await successor.until('done').catch(({ message }: Error) => log.error(message))
  successor.release()
  replaced()
}

/** Rejects with HandoverFailed. */
async function socketsOf({ reactors, control, configuration, healthFd }: UpgradedNode): Promise<SocketTable> {
  const tables: SocketTable[] = []
  for (const table of await Promise.all(reactors.call({ kind: 'sockets' }))) {
    if (table === null) throw new HandoverFailed('a reactor does not answer')
    tables.push(table)
  }
  const health = healthAddress(configuration)
  tables.push({ [socketName('health', health.host, health.port)]: [healthFd] })
  const fd = (await control?.socket()) ?? -1
  const management = managementAddress(configuration)
  if (fd >= 0) tables.push({ [socketName('management', management.host, management.port)]: [fd] })
  const sockets = mergeSockets(tables)
  if (Object.values(sockets).some(fds => fds.some(one => one < 0)))
    throw new HandoverFailed('this system cannot hand over sockets')
  return sockets
}
