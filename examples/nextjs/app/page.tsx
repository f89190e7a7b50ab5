export default function Page() {
  return <p>Stripe sends to /webhooks/stripe.</p>;
}
