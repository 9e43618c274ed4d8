/** The template file that comes with the gateway, as `conf/sms-providers.xml` has it. */

/** Name of the file in the home folder. */
export const PROVIDER_FILE = 'sms-providers.xml'

export const SHIPPED_PROVIDERS = `<?xml version="1.0" encoding="UTF-8"?>
<!--
  SMS providers that senders can name, each with the template of its request bodies. A change is in force at once.

  $NAME stands for a field of the sender: name, provider, providerURL, key, secret, sender, contentType.
  $body.NAME stands for its property body.NAME, which a sender of this provider then needs.
  {{mobile}} and {{body}} stand for recipient and text of the message.
  Values are escaped. Outside of quotes in JSON, a value becomes a JSON string; $body.NAME may be a number, true, false.

  Attributes of an entry: provider (the name), contentType (JSON or FORM; default: JSON), and defaults for properties of
  senders, in which $NAME stands for fields too: http.username, http.password, http.headers, http.client.method.
  concurrency and rate (messages per second) bound each sender of the provider, below the settings of the project.
-->
<providers>
  <template provider="Vonage">
    <body>{"api_key":"$key","api_secret":"$secret","from":"$sender","to":"{{mobile}}","text":"{{body}}"}</body>
  </template>
  <template provider="Twilio" contentType="FORM" http.username="$key" http.password="$secret">
    <body>Body={{body}}&amp;To={{mobile}}&amp;From=$sender</body>
  </template>
  <template provider="Bulksms" http.username="$key" http.password="$secret">
    <body>{"from":"$sender","to":"{{mobile}}","body":"{{body}}"}</body>
  </template>
  <template provider="Plivo" http.username="$key" http.password="$secret">
    <body>{"src":"$sender","dst":"{{mobile}}","text":"{{body}}"}</body>
  </template>
  <template provider="Clickatell" http.headers="Authorization: $key">
    <body>{"from":"$sender","to":["{{mobile}}"],"content":"{{body}}"}</body>
  </template>
</providers>
`
