/** A stopped listener with a full accept queue: a further connection attempt gets no response. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connectPeer } from './peers.ts'

export async function deafListener(): Promise<{ readonly port: number; close(): void }> {
  const program = `
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      process.stdout.write(String(server.address().port) + '\\n')
    })`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  child.kill('SIGSTOP')
  const port = Number(line.toString())
  // The accept queue holds one connection more than the backlog.
  const waiting = [await connectPeer(port), await connectPeer(port)]
  return {
    port,
    close() {
      for (const peer of waiting) peer.destroy()
      child.kill('SIGKILL')
    },
  }
}
