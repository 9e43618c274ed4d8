/**
 * Forged tokens, made from a genuine one, for an issuer that signs with any algorithm. Each must be refused with
 * 900901: by the TokenValidator (forged-tokens.test.ts) and by a whole gateway.
 */
import { createHmac, createPublicKey } from 'node:crypto'
import {
  base64url,
  ecdsaNumbers,
  orderBytes,
  signatureOf,
  signedParts,
  signedToken,
  type TokenSigner,
} from './token-maker.ts'

export interface ForgeryInput {
  /** Claims of the genuine token. */
  readonly claims: Readonly<Record<string, unknown>> & { readonly iss: string }
  readonly signer: TokenSigner
  /** Another trusted issuer, and a key of it. */
  readonly otherIssuer: string
  readonly otherSigner: TokenSigner
  /** The plan of the issuer names audiences. */
  readonly hasAudience: boolean
  /** The issuer has low_s, or the genuine token is cached: then the other ECDSA signature is refused. */
  readonly lowS: boolean
  readonly nowMs: number
}

interface ForgedToken {
  readonly name: string
  readonly token: string
}

export function forgedTokens(input: ForgeryInput): readonly ForgedToken[] {
  const { algorithm } = input.signer
  const rows = [
    ...signatureRows(input),
    ...keyRows(input),
    ...claimRows(input),
    ...textRows(input),
    ...headerRows(input),
  ]
  const own = algorithm.startsWith('ES') ? ecdsaRows(input) : algorithm.startsWith('RS') ? rsaRows(input) : []
  return [...rows, ...own].map(([name, token]) => ({ name: `${name} (${algorithm})`, token }))
}

type Row = readonly [name: string, token: string]

function genuine({ signer, claims }: ForgeryInput): { header: string; payload: string; signature: string } {
  const [header, payload, signature] = signedToken(signer, claims).split('.') as [string, string, string]
  return { header, payload, signature }
}

function signatureRows(input: ForgeryInput): Row[] {
  const { signer, claims } = input
  const { header, payload, signature } = genuine(input)
  const unsigned = (alg: string): string => `${base64url({ typ: 'at+jwt', alg, kid: signer.kid })}.${payload}.`
  const other = signedToken(signer, { ...claims, jti: 'another' }).split('.')
  return [
    ...['none', 'None', 'NONE', 'nOnE', ''].map((alg): Row => [`alg ${alg || 'empty'}, unsigned`, unsigned(alg)]),
    ['alg none, signature of the genuine token', `${unsigned('none')}${signature}`],
    ['signature stripped', `${header}.${payload}.`],
    ['signature stripped, and its dot', `${header}.${payload}`],
    ['claims alone', `.${payload}.`],
    ['signature of another token', `${header}.${payload}.${other[2]}`],
    ['claims of another token', `${header}.${other[1]}.${signature}`],
    ['known jti with another signature', `${header}.${payload}.${base64url(Buffer.alloc(raw(signature).length, 7))}`],
    ['known jti, more scopes', `${header}.${base64url({ ...claims, scope: 'everything' })}.${signature}`],
    ['truncated by a byte', `${header}.${payload}.${signature.slice(0, -1)}`],
    ['truncated by four bytes', `${header}.${payload}.${signature.slice(0, -4)}`],
    ['signature with a byte more', `${header}.${payload}.${base64url(Buffer.concat([raw(signature), Buffer.of(0)]))}`],
    ['signature of zeros', `${header}.${payload}.${base64url(Buffer.alloc(raw(signature).length))}`],
    ['truncated in the claims', `${header}.${payload.slice(0, payload.length >> 1)}`],
  ]
}

function keyRows({ signer, otherSigner, otherIssuer, claims }: ForgeryInput): Row[] {
  const impostor = { ...otherSigner, kid: signer.kid }
  const jwk = otherSigner.jwk
  const withKid = (kid: unknown): string => signedToken(signer, claims, { kid })
  return [
    ["another issuer's key under this kid", signedToken(impostor, claims)],
    ["another issuer's key and kid", signedToken(otherSigner, claims)],
    ["this issuer's key for another issuer", signedToken(signer, { ...claims, iss: otherIssuer })],
    [
      "this issuer's key, another issuer's kid and name",
      signedToken({ ...signer, kid: otherSigner.kid }, { ...claims, iss: otherIssuer }),
    ],
    ["another issuer's kid", withKid(otherSigner.kid)],
    ['kid with a path traversal', withKid('../../../../dev/null')],
    ['kid with an SQL injection', withKid("' UNION SELECT 'key' --")],
    ['kid that is a URL', withKid('https://attacker.example/key')],
    ['kid with a zero byte', withKid(`${signer.kid}\0`)],
    ['kid in another case', withKid(`${signer.kid}`.toUpperCase())],
    ['kid with white space', withKid(` ${signer.kid}`)],
    ['kid __proto__', withKid('__proto__')],
    ['kid empty', withKid('')],
    ['kid a list', withKid([signer.kid])],
    ['kid an object', withKid({ toString: signer.kid })],
    ['kid a number', withKid(0)],
    ['kid null', withKid(null)],
    ['embedded jwk', signedToken(impostor, claims, { jwk })],
    ['embedded jwk, without a kid', signedToken(otherSigner, claims, { jwk, kid: undefined })],
    ['embedded jwk, genuine otherwise', signedToken(signer, claims, { jwk: signer.jwk })],
    ['jku', signedToken(impostor, claims, { jku: 'https://attacker.example/jwks' })],
    ['jku, kid of its key set', signedToken(otherSigner, claims, { jku: 'https://attacker.example/jwks' })],
    ['x5u', signedToken(impostor, claims, { x5u: 'https://attacker.example/chain.pem' })],
    ['x5c', signedToken(impostor, claims, { x5c: ['MIIB'] })],
    ['x5t', signedToken(impostor, claims, { x5t: 'AAAAAAAAAAAAAAAAAAAAAAAAAAA' })],
  ]
}

function claimRows({ signer, claims, hasAudience, nowMs, otherIssuer }: ForgeryInput): Row[] {
  const nowS = Math.floor(nowMs / 1000)
  const { iss: issuer } = claims
  const having = (name: string, more: object): Row => [name, signedToken(signer, { ...claims, ...more })]
  const audience: Row[] = hasAudience
    ? [
        having('for another audience', { aud: 'somebody-else' }),
        having('for other audiences', { aud: ['somebody', 'else'] }),
        having('for no audience', { aud: undefined }),
        having('for an empty list of audiences', { aud: [] }),
      ]
    : []
  return [
    ...audience,
    having('of an unknown issuer', { iss: 'https://attacker.example/' }),
    having('of another issuer that is known', { iss: otherIssuer }),
    having('of its issuer with a trailing slash', { iss: `${issuer}/` }),
    having('of its issuer in capitals', { iss: issuer.toUpperCase() }),
    having('of a list of issuers', { iss: [issuer] }),
    having('of no issuer', { iss: undefined }),
    having('expired', { exp: nowS - 3600 }),
    having('expired long ago', { exp: 0 }),
    having('without an end', { exp: undefined }),
    having('end as a text', { exp: String(nowS + 3600) }),
    having('end null', { exp: null }),
    having('end as a list', { exp: [nowS + 3600] }),
    having('not valid yet', { nbf: nowS + 3600 }),
    having('begin as a text', { nbf: '0' }),
    having('jti as an object', { jti: {} }),
    having('aud as a number', { aud: 1 }),
    having('bound to a key (cnf jkt)', { cnf: { jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' } }),
    having('cnf that is no object', { cnf: 'x5t' }),
    having('scope as an object', { scope: { everything: true } }),
    ['an ID token', signedToken(signer, { ...claims, at_hash: '77QmUPtjPfzWtF2AnpK9RQ' }, { typ: 'JWT' })],
    ['a DPoP proof', signedToken(signer, claims, { typ: 'dpop+jwt' })],
    ['a logout token', signedToken(signer, claims, { typ: 'logout+jwt' })],
  ]
}

const SPARE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Changes unused bits of the last character: a lenient decoder reads the same bytes. */
function withSpareBits(part: string): string {
  if (part.length % 4 === 0) return `${part}A`
  const last = SPARE.indexOf(part.at(-1)!)
  return `${part.slice(0, -1)}${SPARE[last ^ 1]}`
}

/** Plain base64 instead of base64url: a lenient decoder reads the same bytes. */
function inOtherAlphabet(part: string): string {
  const other = part.replaceAll('-', '+').replaceAll('_', '/')
  return other === part ? `+/${part.slice(2)}` : other
}

function textRows(input: ForgeryInput): Row[] {
  const { signer, claims } = input
  const { header, payload, signature } = genuine(input)
  const json = JSON.stringify(claims)
  const headerJson = Buffer.from(header, 'base64url').toString()
  const withClaims = (text: string | Buffer): string => signedParts(signer, header, base64url(text))
  const withHeader = (text: string): string => signedParts(signer, base64url(text), payload)
  const issuer = JSON.stringify(claims.iss)
  return [
    ['spare bits of the header', `${withSpareBits(header)}.${payload}.${signature}`],
    ['spare bits of the claims', `${header}.${withSpareBits(payload)}.${signature}`],
    ['spare bits of the signature', `${header}.${payload}.${withSpareBits(signature)}`],
    ['spare bits of the claims, signed', signedParts(signer, header, withSpareBits(payload))],
    ['padding', `${header}.${payload}.${signature}=`],
    ['padding twice', `${header}.${payload}.${signature}==`],
    ['padding of the header', `${header}=.${payload}.${signature}`],
    ['padding of the claims, signed', signedParts(signer, header, `${payload}=`)],
    ['white space in the signature', `${header}.${payload}.${signature.slice(0, 9)} ${signature.slice(9)}`],
    ['a tab behind the signature', `${header}.${payload}.${signature}\t.`],
    ['white space in the claims, signed', signedParts(signer, header, `${payload.slice(0, 9)} ${payload.slice(9)}`)],
    ['the other alphabet', `${header}.${payload}.${inOtherAlphabet(signature)}`],
    ['four parts', `${header}.${payload}.${signature}.`],
    ['five parts', `${header}.${payload}.${signature}.${signature}.${signature}`],
    ['an empty part in front', `.${header}.${payload}.${signature}`],
    ['oversized', signedToken(signer, { ...claims, filler: 'x'.repeat(8192) })],
    ['iss twice', withClaims(`{"iss":"https://attacker.example/",${json.slice(1)}`)],
    ['iss twice, the genuine one last', withClaims(`${json.slice(0, -1)},"iss":${issuer}}`)],
    ['scope twice', withClaims(`${json.slice(0, -1)},"scope":"a","scope":"b"}`)],
    ['scope twice, once with an escape', withClaims(`${json.slice(0, -1)},"sc\\u006fpe":"a","sc\\u006Fpe":"b"}`)],
    ['a nested duplicate member', withClaims(`${json.slice(0, -1)},"x":[{"a":1,"b":{},"a":2}]}`)],
    ['alg twice', withHeader(`{"alg":"none",${headerJson.slice(1)}`)],
    ['kid twice', withHeader(`${headerJson.slice(0, -1)},"kid":"other"}`)],
    ['__proto__', withClaims(`${json.slice(0, -1)},"__proto__":{"aut":"APPLICATION"}}`)],
    ['claims nested 99 deep', withClaims(`${json.slice(0, -1)},"x":${'['.repeat(99)}${']'.repeat(99)}}`)],
    ['claims that are a list', withClaims(`[${json}]`)],
    ['claims that are a text', withClaims(JSON.stringify(json))],
    ['claims null', withClaims('null')],
    ['claims with a comment', withClaims(`${json}/**/`)],
    ['claims behind a byte order mark', withClaims(`\ufeff${json}`)],
    [
      'claims that are no UTF-8',
      withClaims(Buffer.concat([Buffer.from(`${json.slice(0, -1)},"x":"`), Buffer.of(0xff), Buffer.from('"}')])),
    ],
    ['claims empty', withClaims('')],
  ]
}

function headerRows({ signer, claims }: ForgeryInput): Row[] {
  const having = (name: string, header: object): Row => [name, signedToken(signer, claims, header)]
  return [
    having('critical extension', { crit: ['exp'] }),
    having('critical extension b64', { crit: ['b64'], b64: false }),
    having('no critical extension', { crit: [] }),
    having('b64 alone', { b64: true }),
    having('alg missing', { alg: undefined }),
    having('alg a list', { alg: [signer.algorithm] }),
    having('alg in lower case', { alg: signer.algorithm.toLowerCase() }),
    having('alg of another key', { alg: signer.algorithm === 'EdDSA' ? 'ES256' : 'EdDSA' }),
    having('typ of something else', { typ: 'JOSE' }),
    having('typ a list', { typ: ['at+jwt'] }),
  ]
}

/** HMAC with the public key as its secret (RFC 8725 2.1). */
function rsaRows({ signer, claims }: ForgeryInput): Row[] {
  const key = createPublicKey(signer.privateKey)
  const secrets: (readonly [string, string | Buffer])[] = [
    ['PEM', key.export({ format: 'pem', type: 'spki' })],
    ['PEM without its last line end', key.export({ format: 'pem', type: 'spki' }).toString().trimEnd()],
    ['PKCS #1', key.export({ format: 'pem', type: 'pkcs1' })],
    ['DER', key.export({ format: 'der', type: 'spki' })],
    ['JWK', JSON.stringify(signer.jwk)],
    ['modulus', raw((signer.jwk as { readonly n?: string }).n ?? '')],
    ['nothing', ''],
  ]
  return secrets.flatMap(([form, secret]) =>
    ['HS256', 'HS384', 'HS512'].map((alg): Row => {
      const text = `${base64url({ typ: 'at+jwt', alg, kid: signer.kid })}.${base64url(claims)}`
      const mac = createHmac(`sha${alg.slice(2)}`, secret)
        .update(text)
        .digest('base64url')
      return [`${alg} with the public key as ${form}`, `${text}.${mac}`]
    }),
  )
}

function ecdsaRows(input: ForgeryInput): Row[] {
  const { signer, lowS } = input
  const { algorithm } = signer
  const { header, payload, signature } = genuine(input)
  const [r, s] = ecdsaNumbers(algorithm, raw(signature), true)
  const zero = Buffer.alloc(r.length)
  const order = orderBytes(algorithm, r.length)
  const having = (name: string, ...parts: readonly Buffer[]): Row => [
    name,
    `${header}.${payload}.${base64url(Buffer.concat(parts))}`,
  ]
  const larger = Buffer.concat(ecdsaNumbers(algorithm, raw(signature), false))
  return [
    having('r and s zero', zero, zero),
    having('r zero', zero, s),
    having('s zero', r, zero),
    having('r the order of the curve', order, s),
    having('s the order of the curve', r, order),
    having('s as large as can be', r, Buffer.alloc(r.length, 0xff)),
    having('r and s swapped', s, r),
    having('signature in DER', derOf(r, s)),
    having('r and s with a leading zero', Buffer.of(0), r, Buffer.of(0), s),
    ...(lowS ? [having('the signature with the larger s', larger)] : []),
    ['signed with another hash', withOtherHash(input)],
  ]
}

/** Signed with the right key, and alg names another hash. */
function withOtherHash({ signer, claims }: ForgeryInput): string {
  const alg = signer.algorithm === 'ES256' ? 'ES384' : 'ES256'
  const text = `${base64url({ typ: 'at+jwt', alg, kid: signer.kid })}.${base64url(claims)}`
  return `${text}.${base64url(signatureOf(signer, text))}`
}

function derOf(r: Buffer, s: Buffer): Buffer {
  const number = (value: Buffer): Buffer => {
    const bytes = value[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), value]) : value
    return Buffer.concat([Buffer.of(2, bytes.length), bytes])
  }
  const body = Buffer.concat([number(r), number(s)])
  return Buffer.concat([body.length < 128 ? Buffer.of(0x30, body.length) : Buffer.of(0x30, 0x81, body.length), body])
}

function raw(part: string): Buffer {
  return Buffer.from(part, 'base64url')
}
