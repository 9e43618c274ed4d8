/**
 * The certificate that every proxy shows, ECDSA on P-256, made anew for each run, and what the clients offer: TLS 1.3
 * with one suite and one group, so that every proxy is asked for the same work whatever it would have preferred.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { findExecutable } from './program.ts'

export const SERVER_NAME = 'gateway.example.com'
export const SUITE = 'TLS_AES_256_GCM_SHA384'
export const GROUP = 'X25519'

export interface Certificate {
  readonly chainFile: string
  readonly keyFile: string
  /** Chain and key in one file, as HAProxy wants them. */
  readonly bundleFile: string
  /** Makes programs that use OpenSSL offer only the suite and the group above. */
  readonly environment: Readonly<Record<string, string>>
}

const CLIENT_CONFIGURATION = `openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = client
[client]
MinProtocol = TLSv1.3
Ciphersuites = ${SUITE}
Groups = ${GROUP}
`

/** Undefined where the openssl command is missing. */
export function makeCertificate(folder: string): Certificate | undefined {
  const openssl = findExecutable('openssl')
  if (openssl === undefined) return undefined
  mkdirSync(folder, { recursive: true })
  const chainFile = `${folder}/chain.pem`
  const keyFile = `${folder}/key.pem`
  const bundleFile = `${folder}/bundle.pem`
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const names = ['-subj', `/CN=${SERVER_NAME}`, '-addext', `subjectAltName=DNS:${SERVER_NAME},IP:127.0.0.1`]
  execFileSync(openssl, ['req', '-x509', ...key, '-out', chainFile, '-days', '30', ...names], { stdio: 'ignore' })
  writeFileSync(bundleFile, readFileSync(chainFile, 'utf8') + readFileSync(keyFile, 'utf8'))
  writeFileSync(`${folder}/client.cnf`, CLIENT_CONFIGURATION)
  return { chainFile, keyFile, bundleFile, environment: { OPENSSL_CONF: `${folder}/client.cnf` } }
}

/** What every TLS client of the bench offers, and the only certificate that it takes. */
function offer(chainFile: string): ConnectionOptions {
  return {
    ca: readFileSync(chainFile),
    servername: SERVER_NAME,
    minVersion: 'TLSv1.3',
    ciphers: SUITE,
    ecdhCurve: GROUP,
  }
}

type Dialled = Pick<TcpNetConnectOpts, 'port' | 'onread'>

export function connectSecurely(options: Dialled, chainFile: string, connected: () => void): TLSSocket {
  return connect({ host: '127.0.0.1', ...options, ...offer(chainFile) }, connected)
}
