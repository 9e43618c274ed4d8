/**
 * The token issuer of the bench: one RSA key per run, its key set (RFC 7517) on a local port, and RS256 tokens
 * (RFC 7519). All peers that check tokens receive the same ones.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { AddressInfo } from 'node:net'

export const ISSUER = 'https://issuer.bench.example'
export const CLIENT_ID = 'bench-client'
const KEY_ID = 'bench-1'
const LIFETIME_S = 86_400

function base64UrlJson(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

class TokenIssuer {
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  readonly #tokens: string[] = []
  #keySetUrl: Promise<string> | undefined

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    this.#privateKey = privateKey
    this.#publicKey = publicKey
  }

  get publicPem(): string {
    return this.#publicKey.export({ type: 'spki', format: 'pem' }).toString()
  }

  /** The first `count` tokens, the same at each call. */
  tokens(count: number): readonly string[] {
    while (this.#tokens.length < count) this.#tokens.push(this.#issue(this.#tokens.length))
    return this.#tokens.slice(0, count)
  }

  /** A token with these scopes, another one at each call. */
  token(scope: string): string {
    return this.#issue(this.#tokens.length, scope)
  }

  /** URL of the key set; it is served until the bench ends. */
  keySetUrl(): Promise<string> {
    this.#keySetUrl ??= this.#serve()
    return this.#keySetUrl
  }

  #issue(number: number, scope = 'default'): string {
    const now = Math.floor(Date.now() / 1000)
    const header = { alg: 'RS256', typ: 'at+jwt', kid: KEY_ID }
    const identity = { iss: ISSUER, sub: 'bench', azp: CLIENT_ID, aut: 'APPLICATION', scope }
    const claims = { ...identity, iat: now, nbf: now, exp: now + LIFETIME_S, jti: `bench-${number}` }
    const signed = `${base64UrlJson(header)}.${base64UrlJson(claims)}`
    return `${signed}.${sign('sha256', Buffer.from(signed), this.#privateKey).toString('base64url')}`
  }

  async #serve(): Promise<string> {
    const jwk = { ...this.#publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }
    const keySet = JSON.stringify({ keys: [jwk] })
    const server = createServer((_, response) => {
      response.setHeader('Content-Type', 'application/json').end(keySet)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    server.unref()
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
  }
}

let issuer: TokenIssuer | undefined

export function tokenIssuer(): TokenIssuer {
  issuer ??= new TokenIssuer()
  return issuer
}
