/**
 * Proxies from the environment variable BENCH_EXTRA, for one run:
 *
 *     BENCH_EXTRA='mine=exec ./my-proxy --port $PORT --backend $DOWNLOAD_PORT' npm run bench -- --peer mine,nginx
 *
 * A line names one proxy. The shell runs each command with the variables PORT, DOWNLOAD_PORT and UPLOAD_PORT.
 */
import { PROXY_CORE, Program, pinned } from '../program.ts'
import type { Peer } from './peer.ts'

export function extraPeers(text: string): Peer[] {
  const lines = text.split('\n').map(line => line.trim())
  return lines
    .filter(line => line !== '')
    .map(line => {
      const equals = line.indexOf('=')
      if (equals < 1) throw new Error(`BENCH_EXTRA: expected name=command, found ${line}`)
      return extraPeer(line.slice(0, equals), line.slice(equals + 1))
    })
}

function extraPeer(name: string, command: string): Peer {
  return {
    name,
    capabilities: ['requests'],
    missing: () => undefined,
    version: () => 'not of this project',
    async start({ port, downloadPort, uploadPort }) {
      const ports = { PORT: String(port), DOWNLOAD_PORT: String(downloadPort), UPLOAD_PORT: String(uploadPort) }
      const program = new Program(name, pinned(PROXY_CORE, ['sh', '-c', command]), ports)
      await program.waitForPort(port)
      return program
    },
  }
}
