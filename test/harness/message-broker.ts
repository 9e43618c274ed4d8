/**
 * A real message broker (RabbitMQ on this machine) with a virtual host per run, removed afterwards. A missing broker
 * skips tests with its reason, or fails them where CI is set.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { once } from 'node:events'
import { promisify } from 'node:util'

const run = promisify(execFile)

const BROKER_PORT = 5672
const USER = 'guest'

interface MessageBroker {
  readonly vhost: string
  readonly port: number
  readonly username: string
  readonly password: string
  remove(): Promise<void>
}

/** Resolves with the reason where no broker is available. */
export async function messageBroker(): Promise<MessageBroker | string> {
  const vhost = `sluice-${randomBytes(6).toString('hex')}`
  try {
    const socket = connect(BROKER_PORT, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    await run('rabbitmqctl', ['-q', 'add_vhost', vhost])
    await run('rabbitmqctl', ['-q', 'set_permissions', '-p', vhost, USER, '.*', '.*', '.*'])
  } catch (error) {
    if (process.env.CI !== undefined) throw error
    return `no RabbitMQ on port ${BROKER_PORT} of this machine: ${(error as Error).message.split('\n')[0]}`
  }
  return {
    ...{ vhost, port: BROKER_PORT, username: USER, password: USER },
    remove: async () => {
      await run('rabbitmqctl', ['-q', 'delete_vhost', vhost])
    },
  }
}
