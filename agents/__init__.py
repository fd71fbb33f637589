"""The learned schemes, one file each, and in ``pretrained/`` the policies that come with ccgym."""
