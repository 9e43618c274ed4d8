/**
 * Starts the backends of all proxies on the load core. Downloads come from nginx if it is installed, else from a server
 * of the bench. Uploads always go to the server of the bench: nginx responds to an upload that it discards before it
 * has read it, and a proxy may then rightly close the connection.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Certificate, CIPHER_SUITE, KEY_EXCHANGE_GROUP } from '../certificate.ts'
import { findExecutable, LOAD_CORE, Program, pinned } from '../program.ts'
import { BODY_BYTES } from '../scenarios.ts'

export interface Backends {
  readonly name: string
  readonly downloadPort: number
  /** The same downloads over TLS; undefined if nginx or openssl is missing. */
  readonly tlsDownloadPort: number | undefined
  readonly uploadPort: number
  /** Port of the WebSocket backend. */
  readonly echoPort: number
  /** Ports on which a fail-over scenario starts two equal backends. */
  readonly replicaPorts: readonly [number, number]
  stop(): Promise<void>
}

/** Paths of exported projects; also with their contexts, for proxies that do not remove them. */
const RESOURCE_PREFIXES = ['/orders', '/customers/', '/menu/', '/chain/', '/apis/']

/** Serves each path with and without the API context, which only the gateway removes. */
function nginxConfiguration(folder: string, port: number, tls: TlsPort | undefined): string {
  const smallBody = `return 200 "${'x'.repeat(BODY_BYTES['1k'])}";`
  const locations = Object.entries(BODY_BYTES).flatMap(([name, bytes]) => {
    const content = bytes === BODY_BYTES['1k'] ? smallBody : `alias ${folder}/${name};`
    return [`/${name}`, `/bench/${name}`].map(path => `location = ${path} { ${content} }`)
  })
  for (const path of RESOURCE_PREFIXES) locations.push(`location ${path} { ${smallBody} }`)
  return `daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_processes 1; worker_rlimit_nofile 16384;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 8192; }
http {
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; gzip off; open_file_cache max=16; default_type text/plain;
  keepalive_timeout 3600s; keepalive_requests 1000000000;
  client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  server {
    listen 127.0.0.1:${port} backlog=4096;${tls === undefined ? '' : tlsListener(tls)}
    ${locations.join('\n    ')}
  }
}
`
}

interface TlsPort {
  readonly port: number
  readonly certificate: Certificate
}

/** Enforces the TLS parameters of the bench on the connections from the proxies. */
function tlsListener({ port, certificate }: TlsPort): string {
  return `
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${certificate.chainFile}; ssl_certificate_key ${certificate.keyFile};
    ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites ${CIPHER_SUITE}; ssl_ecdh_curve ${KEY_EXCHANGE_GROUP};`
}

export async function startBackends(
  folder: string,
  basePort: number,
  certificate: Certificate | undefined,
): Promise<Backends> {
  const downloadPort = basePort
  const uploadPort = basePort + 1
  const echoPort = basePort + 2
  const ownServer = fileURLToPath(new URL('http-backend.ts', import.meta.url))
  const echoServer = fileURLToPath(new URL('websocket-backend.ts', import.meta.url))
  const own = (port: number, server = ownServer): Program =>
    new Program('a backend of the bench', pinned(LOAD_CORE, [process.execPath, server, String(port)]))

  const nginx = findExecutable('nginx')
  const tls = nginx === undefined || certificate === undefined ? undefined : { port: basePort + 5, certificate }
  const downloads = nginx === undefined ? own(downloadPort) : startNginx(nginx, folder, downloadPort, tls)
  const uploads = own(uploadPort)
  const echo = own(echoPort, echoServer)
  await Promise.all([downloads.waitForPort(downloadPort), uploads.waitForPort(uploadPort), echo.waitForPort(echoPort)])
  return {
    name: nginx === undefined ? 'own server' : 'nginx (uploads and WebSocket: own servers)',
    downloadPort,
    tlsDownloadPort: tls?.port,
    uploadPort,
    echoPort,
    replicaPorts: [basePort + 3, basePort + 4],
    stop: async () => {
      await Promise.all([downloads.stop(), uploads.stop(), echo.stop()])
    },
  }
}

function startNginx(nginx: string, parent: string, port: number, tls: TlsPort | undefined): Program {
  const folder = `${parent}/backend`
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(BODY_BYTES)) writeFileSync(`${folder}/${name}`, Buffer.alloc(bytes, 'x'))
  writeFileSync(`${folder}/nginx.conf`, nginxConfiguration(folder, port, tls))
  return new Program(
    'the backend nginx',
    pinned(LOAD_CORE, [nginx, '-e', 'stderr', '-p', folder, '-c', `${folder}/nginx.conf`]),
  )
}
