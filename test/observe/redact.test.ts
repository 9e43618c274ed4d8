/** Redaction: URLs and texts that stay as they are, and secrets in every spelling. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactMembers, redactText, redactUrl } from '../../src/observe/redact.ts'

const SHOWN = [
  '/',
  '/echo/1.0/orders/17',
  '/echo?page=2&size=10',
  '/echo?q=a%20b+c&lang=d%C3%A9',
  '/echo?zipcode=1010&country_code=AT&keyword=x&monkey=y',
  '/echo?x=1;y=2',
  '/echo?',
  '/echo?&&;;==',
  '/echo?token',
  '/users/@ada/posts',
  '/mail/a@b.example?x=1',
  'https://example.org/@ada/story?x=1',
  'http://host:8080/a',
  'http://[::1]:80/a@b',
  '*',
  '',
] as const

const NAMES_OF_SECRETS = [
  ...['apikey', 'api_key', 'api-key', 'access_token', 'token', 'code', 'client_secret', 'password', 'id_token'],
  ...['refresh_token', 'assertion', 'client_assertion', 'secret', 'key', 'subscription-key', 'X-Amz-Signature', 'sig'],
  ...['Authorization', 'code_verifier', 'device_code', 'jwt', 'pwd', 'SAMLResponse', 'passwd', 'sessionid', 'token2'],
] as const

/** Spellings of `token` that some backend reads as `token`, with what the log shows. */
const SPELLINGS = [
  ['another case', '/a?ToKeN=s3cr3t&x=1', '/a?ToKeN=***&x=1'],
  ['one letter encoded', '/a?%74oken=s3cr3t', '/a?%74oken=***'],
  ['all letters encoded', '/a?%74%6f%6B%65%6e=s3cr3t', '/a?%74%6f%6B%65%6e=***'],
  ['encoded twice', '/a?%2574oken=s3cr3t', '/a?%2574oken=***'],
  ['encoded three times', '/a?%252574oken=s3cr3t', '/a?%252574oken=***'],
  ['encoded more often than it is decoded', '/a?%2525252574oken=s3cr3t', '/a?%2525252574oken=***'],
  ['%u escape', '/a?%u0074oken=s3cr3t', '/a?%u0074oken=***'],
  ['full-width letter', '/a?%EF%BD%94oken=s3cr3t', '/a?%EF%BD%94oken=***'],
  ['full-width letter beside a %u escape', '/a?%u0100=1;%EF%BD%94oken=s3cr3t', '/a?%u0100=1;%EF%BD%94oken=***'],
  ['full-width letter in raw bytes', '/a?\xef\xbd\x94oken=s3cr3t', '/a?\xef\xbd\x94oken=***'],
  ['Kelvin sign', '/a?api%E2%84%AAey=s3cr3t', '/a?api%E2%84%AAey=***'],
  ['long s', '/a?%C5%BFecret=s3cr3t', '/a?%C5%BFecret=***'],
  ['NUL behind the name', '/a?token%00=s3cr3t', '/a?token%00=***'],
  ['white space around the name', '/a?+token%20=s3cr3t', '/a?+token%20=***'],
  ['zero-width space within', '/a?to%E2%80%8Bken=s3cr3t', '/a?to%E2%80%8Bken=***'],
  ['dots within', '/a?api.key=s3cr3t', '/a?api.key=***'],
  ['array', '/a?token[]=s3cr3t', '/a?token[]=***'],
  ['array, encoded', '/a?token%5B0%5D=s3cr3t', '/a?token%5B0%5D=***'],
  ['member', '/a?user[password]=s3cr3t', '/a?user[password]=***'],
  ['first of brackets', '/a?token[x]=s3cr3t', '/a?token[x]=***'],
  ['semicolon before', '/a?x=1;token=s3cr3t', '/a?x=1;token=***'],
  ['semicolon in the value', '/a?token=s3;cr3t&x=1', '/a?token=***&x=1'],
  ['encoded semicolon before', '/a?x=1%3Btoken=s3cr3t', '/a?x=***'],
  ['encoded ampersand before', '/a?x=1%26token=s3cr3t', '/a?x=***'],
  ['encoded equals sign', '/a?token%3Ds3cr3t', '/a?***'],
  ['assignment hidden in a name', '/a?x%3D1%26token%3Ds3cr3t=y', '/a?***'],
  ['equals sign in the value', '/a?token=s3=cr3t==&x=1', '/a?token=***&x=1'],
  ['question mark before', '/a?x=1?token=s3cr3t', '/a?x=1?token=***'],
  ['question mark in the value', '/a?token=s3?cr3t', '/a?token=***'],
  ['fragment', 'https://a.example/cb#access_token=s3cr3t&x=1', 'https://a.example/cb#access_token=***&x=1'],
  ['hash sign in the value', '/a?token=s3#cr3t', '/a?token=***'],
  ['encoded question mark before', '/a?x=/b%3Ftoken=s3cr3t', '/a?x=***'],
  ['path parameter', '/a;jsessionid=s3cr3t?x=1', '/a;jsessionid=***?x=1'],
  ['path parameter with a slash', '/a;token=s3/cr3t', '/a;token=***'],
  ['query mark forgotten', '/a&token=s3cr3t&x=1', '/a&token=***&x=1'],
  ['empty parameters before', '/a?&&token=s3cr3t', '/a?&&token=***'],
  ['twice', '/a?token=s3cr3t&token=s3cr3t', '/a?token=***&token=***'],
  ['URL in a parameter', '/a?next=http%3A%2F%2Fb%2F%3Ftoken%3Ds3cr3t&x=1', '/a?next=***&x=1'],
  ['URL in a parameter, raw', '/a?next=http://b/?token=s3cr3t&x=1', '/a?next=http://b/?token=***&x=1'],
  ['URL with userinfo in a parameter', '/a?next=http%3A%2F%2Fada%3As3cr3t%40b%2F', '/a?next=***'],
  ['JSON in a parameter', '/a?q=%7B%22x%22%3A1%2C%22password%22%3A%22s3cr3t%22%7D', '/a?q=***'],
  ['JSON in a parameter, raw', '/a?q={"password" : "s3cr3t"}', '/a?q=***'],
  ['signed token under any name', '/a?t=eyJhbGciOiJub25l.eyJzdWIi.s3cr3t', '/a?t=***'],
  ['no leading slash', 'a?token=s3cr3t', 'a?token=***'],
  ['userinfo', 'http://ada:s3cr3t@b/c', 'http://***@b/c'],
  ['userinfo without a password', 'http://s3cr3t@b/c', 'http://***@b/c'],
  ['userinfo with @', 'http://ada:s3@cr3t@b/c', 'http://***@b/c'],
  ['userinfo with a slash', 'http://ada:s3/cr3t@b/c', 'http://***@b/c'],
  ['userinfo with @ and a slash', 'http://ada:s3@cr/s3cr3t@b/c', 'http://***@b/c'],
  ['userinfo with a question mark', 'http://ada:s3?cr3t@b/c', 'http://***@b/c'],
  ['userinfo behind back slashes', 'http:\\\\ada:s3cr3t@b/c', 'http:\\\\***@b/c'],
  ['userinfo behind one slash', 'http:/ada:s3cr3t@b/c', 'http:/***@b/c'],
  ['userinfo without a scheme', '//ada:s3cr3t@b/c', '//***@b/c'],
  ['userinfo of authority-form', 'ada:s3cr3t@b:443', '***@b:443'],
  ['userinfo and parameter', 'http://ada:s3cr3t@b/c?token=s3cr3t', 'http://***@b/c?token=***'],
] as const

const TEXTS = [
  ['connect ECONNREFUSED 127.0.0.1:9000', 'connect ECONNREFUSED 127.0.0.1:9000'],
  ['Authorization: Bearer s3cr3t', 'Authorization: ***'],
  ['got "proxy-authorization": "Basic s3cr3t"', 'got "proxy-authorization": ***'],
  ['rejected bearer s3cr3ts3cr3t (expired)', 'rejected bearer *** (expired)'],
  ['apikey: s3cr3t refused', 'apikey: *** refused'],
  ['{"access_token": "s3cr3t"}', '{"access_token": ***'],
  ['GET http://b/?token=s3cr3t&x=1 failed: reset', 'GET http://b/?token=***&x=1 failed: reset'],
  ['password=s3cr3t refused', 'password=*** refused'],
  ['proxy url=http://ada:s3cr3t@b/ refused', 'proxy url=http://***@b/ refused'],
] as const

for (const url of SHOWN) {
  test(`${JSON.stringify(url)} stays unchanged`, () => assert.equal(redactUrl(url), url))
}
for (const name of NAMES_OF_SECRETS) {
  test(`the value of ${name} is masked`, () => {
    assert.equal(redactUrl(`/a?x=1&${name}=s3cr3t&y=2`), `/a?x=1&${name}=***&y=2`)
    assert.equal(redactUrl(`/a?${name.toUpperCase()}=s3cr3t`), `/a?${name.toUpperCase()}=***`)
  })
}
for (const [title, url, shown] of SPELLINGS) {
  test(`masked: ${title}`, () => assert.equal(redactUrl(url), shown))
}
for (const [text, shown] of TEXTS) {
  test(`text: ${text}`, () => assert.equal(redactText(text), shown))
}

test('everything after the 128th parameter is masked', () => {
  const seen = '&x=1'.repeat(127)
  assert.equal(redactUrl(`/a?token=1${seen}`), `/a?token=***${seen}`)
  assert.equal(redactUrl(`/a?token=1${seen}&y=s3cr3t&z=s3cr3t`), `/a?token=***${seen}&***`)
})

/** Inputs on which a careless pattern needs quadratic time; at this size such a one does not come back. */
const LONG = 200_000
const HOSTILE = [
  '%25',
  'eyJ',
  '=',
  ';',
  '&',
  '?a',
  '":',
  "'",
  '1',
  '[',
  ' ',
  'http://a:',
  '@',
  '%',
  'token',
  '%u0074',
  ':/',
] as const
for (const piece of HOSTILE) {
  test(`a long run of ${JSON.stringify(piece)} takes linear time`, () => {
    const run = piece.repeat(LONG / piece.length)
    for (const text of [`/a?${run}`, `/a?x=%20${run}`, `/a?${run}=%20x`, `http://${run}`]) {
      redactUrl(text)
      redactText(text)
    }
  })
}

/** [text, what is shown of it]. */
const MEMBERS: readonly (readonly [string, string])[] = [
  ['<x><password>a b</password><n>1</n></x>', '<x><password>***</password><n>1</n></x>'],
  ['<ns:client_secret a="1"><b>s</b></ns:client_secret>', '<ns:client_secret a="1">***</ns:client_secret>'],
  ['<password><![CDATA[s]]></password>', '<password>***</password>'],
  ['<password/><n>1</n>', '<password/><n>1</n>'],
  ['<password></password>', '<password></password>'],
  ['<x><password>cut s', '<x><password>***'],
  [
    'grant_type=password&username=ann&password=p+w&client_secret=s',
    'grant_type=password&username=ann&password=***&client_secret=***',
  ],
  ['{"password" : "a\\"b", "n":1}', '{"password" : "***", "n":1}'],
  ['{"password":"cut s', '{"password":"***"'],
  ['{"password":{"a":["}"],"b":1},"n":1}', '{"password":"***","n":1}'],
  ['{"password":[1,[2', '{"password":"***"'],
  ['{"pass\\u0077ord":"s"}', '{"pass\\u0077ord":"***"}'],
  ['{"n":"<password>s</password>"}', '{"n":"<password>***</password>"}'],
  ['{"n":[1,2],"of":"x"}', '{"n":[1,2],"of":"x"}'],
  // `code` and `key` name ordinary values too: a secret is long, or stands beside members of OAuth.
  ['<a><code>A1</code><key>k</key></a>', '<a><code>A1</code><key>k</key></a>'],
  ['<a><key>AIzaSyD-1234567890</key></a>', '<a><key>***</key></a>'],
  ['<a><grant_type>x</grant_type><code>A1</code></a>', '<a><grant_type>x</grant_type><code>***</code></a>'],
  ['{"code":"NOT_FOUND_AT_ALL","key":"two words 2"}', '{"code":"NOT_FOUND_AT_ALL","key":"two words 2"}'],
  ['{"code":{"system":"urn:oid:2.16.840.1.113883"}}', '{"code":{"system":"urn:oid:2.16.840.1.113883"}}'],
  ['{"code":[{"id":"2.16.840.1.113883.1"}]}', '{"code":[{"id":"2.16.840.1.113883.1"}]}'],
  ['{"redirect_uri":"https://a/","code":"A1"}', '{"redirect_uri":"https://a/","code":"***"}'],
  ['{"api_key":"A1","code":"SplxlOBeZQQYbYS6WxSbIA"}', '{"api_key":"***","code":"***"}'],
  ['{"url":"https://a/b?code=A1&key=B2"}', '{"url":"https://a/b?code=***&key=***'],
]

const asText = (json: unknown) => JSON.stringify({ m: JSON.stringify(json), n: 1 })

/** JSON that is text within JSON, as in the envelopes of queues and functions: [text, what is shown of it]. */
const WITHIN_JSON: readonly (readonly [string, string])[] = [
  [asText({ password: 's3cr3t', n: 1 }), asText({ password: '***', n: 1 })],
  [asText({ a: [{ pwd: 1234 }], n: 'x y' }), asText({ a: [{ pwd: '***' }], n: 'x y' })],
  [asText({ user: 'u', access_token: 's3cr3t' }), asText({ user: 'u', access_token: '***' })],
  [asText({ otp: { a: 's3cr3t' } }), asText({ otp: '***' })],
  [asText({ grant_type: 'x', code: 's3cr3t' }), asText({ grant_type: 'x', code: '***' })],
  [asText({ code: 'A1', key: 'k' }), asText({ code: 'A1', key: 'k' })],
  [asText(asText({ sig: 's3cr3t' })), asText(asText({ sig: '***' }))],
  [asText(asText(asText({ sig: 's3cr3t' }))), asText(asText(asText({ sig: '***' })))],
  ['["{\\u0022pwd\\u0022:\\u0022s3cr3t\\u0022}",1]', '["{\\"pwd\\":\\"***\\"}",1]'],
  ['{"m":"{\\"pwd\\":\\"s3cr3t', '{"m":"{\\"pwd\\":\\"***\\"'],
  ['{"m":"{\\"pwd\\":\\"s3cr3t\\', '{"m":"{\\"pwd\\":\\"***\\"'],
  ['{"m":"say \\"hi\\": you"}', '{"m":"say \\"hi\\": you"}'],
  [' an odd " before {"m":"{\\"password\\":\\"s3cr3t\\"}"}', ' an odd " before {"m":"{\\"password\\":***'],
]
for (const [text, shown] of WITHIN_JSON) {
  test(`of JSON within ${text} is shown: ${shown}`, () => assert.equal(redactMembers(text), shown))
}

test('text that is JSON in JSON more than eight times is masked', () => {
  let text = '{"sig":"s3cr3t"}'
  for (let level = 0; level < 10; level++) text = JSON.stringify([text])
  assert.doesNotMatch(redactMembers(text), /s3cr3t/)
})
for (const [text, shown] of MEMBERS) {
  test(`of members is shown: ${shown}`, () => assert.equal(redactMembers(text), shown))
}

for (const piece of [
  '"password":[',
  '<password>',
  '"password":"',
  '<a',
  '"a":',
  '{"',
  '<password><x>',
  '"\\',
  '"key":[',
  '"code":{',
  '<code>',
  '"key":["a",',
  '"{\\"pwd\\":\\"',
  '"\\"',
  '\\"a\\":',
]) {
  test(`members in a long run of ${piece} take linear time`, () => {
    redactMembers(piece.repeat(LONG / piece.length))
  })
}
