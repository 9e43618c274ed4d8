/**
 * A node without a gateway, because its role needs none (node-parts.ts): no reactor, no listener, no API. It holds its
 * data folder and answers health port and control socket, so that those who look after it learn what it is.
 */
import type { Configuration } from '../config/catalogue.ts'
import { ControlSocket, Refused } from './control-socket.ts'
import { DataLock } from './data-lock.ts'
import { type HealthListener, startHealthListener } from './health-listener.ts'
import type { NodeParts } from './node-parts.ts'
import { allocateMetrics } from '../observe/metrics.ts'
import { claimPort, healthAddress } from './ports.ts'

interface IdleNodeOptions {
  readonly configuration: Configuration
  readonly parts: NodeParts
  readonly dataDir: string
  readonly warn: (cause: string) => void
}

/** What is asked of a gateway. */
const COMMANDS = ['api', 'apis', 'connections', 'endpoints', 'lifecycle', 'reload', 'walk'] as const

export class IdleNode {
  readonly healthHost: string
  readonly #lock: DataLock
  readonly #health: HealthListener
  readonly #control: ControlSocket | null

  private constructor(healthHost: string, lock: DataLock, health: HealthListener, control: ControlSocket | null) {
    this.healthHost = healthHost
    this.#lock = lock
    this.#health = health
    this.#control = control
  }

  /** Throws DataLocked or CannotListen. */
  static async start({ configuration, parts, dataDir, warn }: IdleNodeOptions): Promise<IdleNode> {
    const address = healthAddress(configuration)
    const lock = DataLock.take(dataDir)
    try {
      await claimPort(address)
      const health = await startHealthListener(address.host, address.port, {
        unready: () => parts.notBuilt.join('\n'),
        metrics: allocateMetrics(1),
        moreMetrics: () => '',
        testHooks: null,
      })
      const refuse = (): never => {
        throw new Refused(`this node runs no gateway: ${parts.because}`)
      }
      const commands = Object.fromEntries(COMMANDS.map(command => [command, refuse]))
      return new IdleNode(address.host, lock, health, await ControlSocket.open(dataDir, commands, warn))
    } catch (error) {
      lock.release()
      throw error
    }
  }

  get healthPort(): number {
    return this.#health.port
  }

  /** Nothing is in flight here. */
  async drain(): Promise<void> {
    await this.#health.close()
    this.abort()
  }

  abort(): void {
    this.#control?.close()
    this.#lock.release()
  }
}
