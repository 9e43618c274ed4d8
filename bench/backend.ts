/**
 * What stands behind every proxy: downloads from nginx where it is installed, else from the bench's own server, and
 * uploads always to the bench's own server, because nginx answers an upload it discards before it has read it, and a
 * proxy may then rightly close the connection. Both share the second core with the load generator.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Certificate, GROUP, SUITE } from './certificate.ts'
import { findExecutable, LOAD_CORE, Program, pinned } from './program.ts'
import { BODY_BYTES } from './scenarios.ts'

export interface Backend {
  readonly name: string
  readonly downloadPort: number
  /** The same downloads over TLS; undefined where nginx or openssl is missing. */
  readonly secureDownloadPort: number | undefined
  readonly uploadPort: number
  /** WebSocket messages come back from here. */
  readonly echoPort: number
  /** Where a fail-over scenario starts two more. */
  readonly twinPorts: readonly [number, number]
  stop(): Promise<void>
}

/** Of the exported projects of the contests, and their contexts for proxies that leave them on. */
const RESOURCES = ['/orders', '/customers/', '/menu/', '/chain/', '/apis/']

/** Both path forms are served: as the client sent it, and without the context that the gateway takes off. */
function nginxConfiguration(folder: string, port: number, secure: SecurePort | undefined): string {
  const locations = Object.entries(BODY_BYTES).flatMap(([name, bytes]) => {
    const answer = bytes === BODY_BYTES['1k'] ? `return 200 "${'x'.repeat(bytes)}";` : `alias ${folder}/${name};`
    return [`/${name}`, `/bench/${name}`].map(path => `location = ${path} { ${answer} }`)
  })
  for (const path of RESOURCES) locations.push(`location ${path} { return 200 "${'x'.repeat(BODY_BYTES['1k'])}"; }`)
  return `daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_processes 1; worker_rlimit_nofile 16384;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 8192; }
http {
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; gzip off; open_file_cache max=16; default_type text/plain;
  keepalive_timeout 3600s; keepalive_requests 1000000000;
  client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  server {
    listen 127.0.0.1:${port} backlog=4096;${secure === undefined ? '' : secureListener(secure)}
    ${locations.join('\n    ')}
  }
}
`
}

interface SecurePort {
  readonly port: number
  readonly certificate: Certificate
}

/** The backend decides here what the clients of the bench decide elsewhere: the same cryptography for every proxy. */
function secureListener({ port, certificate }: SecurePort): string {
  return `
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${certificate.chainFile}; ssl_certificate_key ${certificate.keyFile};
    ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites ${SUITE}; ssl_ecdh_curve ${GROUP};`
}

export async function startBackend(
  folder: string,
  basePort: number,
  certificate: Certificate | undefined,
): Promise<Backend> {
  const downloadPort = basePort
  const uploadPort = basePort + 1
  const echoPort = basePort + 2
  const ownServer = fileURLToPath(new URL('backend-server.ts', import.meta.url))
  const echoServer = fileURLToPath(new URL('echo-backend.ts', import.meta.url))
  const own = (port: number, server = ownServer): Program =>
    new Program('the own backend', pinned(LOAD_CORE, [process.execPath, server, String(port)]))

  const nginx = findExecutable('nginx')
  const secure = nginx === undefined || certificate === undefined ? undefined : { port: basePort + 5, certificate }
  const downloads = nginx === undefined ? own(downloadPort) : startNginx(nginx, folder, downloadPort, secure)
  const uploads = own(uploadPort)
  const echo = own(echoPort, echoServer)
  await Promise.all([downloads.accepting(downloadPort), uploads.accepting(uploadPort), echo.accepting(echoPort)])
  return {
    name: nginx === undefined ? 'own server' : 'nginx (uploads and WebSocket: own servers)',
    downloadPort,
    secureDownloadPort: secure?.port,
    uploadPort,
    echoPort,
    twinPorts: [basePort + 3, basePort + 4],
    stop: async () => {
      await Promise.all([downloads.stop(), uploads.stop(), echo.stop()])
    },
  }
}

function startNginx(nginx: string, parent: string, port: number, secure: SecurePort | undefined): Program {
  const folder = `${parent}/backend`
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(BODY_BYTES)) writeFileSync(`${folder}/${name}`, Buffer.alloc(bytes, 'x'))
  writeFileSync(`${folder}/nginx.conf`, nginxConfiguration(folder, port, secure))
  return new Program(
    'the backend nginx',
    pinned(LOAD_CORE, [nginx, '-e', 'stderr', '-p', folder, '-c', `${folder}/nginx.conf`]),
  )
}
