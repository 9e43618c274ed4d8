/** The result of a dry run: a message that is not sent. Its sender is masked already. */
import { requestFields } from '../../delivery/http-sender.ts'
import type { Message } from './dispatcher.ts'

export function shownRequest(message: Message): object {
  if (message.channel === 'email') {
    const { server, signature: _, ...mail } = message.mail
    const { host, port, user, startTls, implicitTls, isAuthenticated } = server
    return { server: { host, port, user, startTls, implicitTls, isAuthenticated }, ...mail }
  }
  const { method, url, body, proxy, credentials } = message.http
  const fields = requestFields(new URL(url), message.http).map(([name, value]) => {
    // The encoded form of a masked password looks like a password.
    const isMasked = credentials !== null && name === 'Authorization'
    return { name, value: isMasked ? 'Basic ********' : value }
  })
  return { method, url, fields, body, proxy }
}
