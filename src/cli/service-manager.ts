/**
 * Tells a service manager that speaks sd_notify, such as systemd, about the state of the process. The program
 * `systemd-notify` sends the message, because Node has no Unix datagram sockets.
 */
import { spawn } from 'node:child_process'
import type { Log } from '../observe/log.ts'

/** Does nothing unless a service manager listens. */
export function notifyServiceManager(states: readonly string[], log: Log): void {
  if ((process.env.NOTIFY_SOCKET ?? '') === '') return
  const failed = (cause: string): void => {
    log.warn(`NOTIFY_SOCKET is set, but the service manager does not get ${states.join(' ')}: systemd-notify ${cause}`)
  }
  spawn('systemd-notify', states, { stdio: 'ignore' })
    .on('error', ({ message }) => failed(`does not run: ${message}`))
    .on('exit', code => {
      if (code !== 0) failed(`ended with ${code}`)
    })
}
